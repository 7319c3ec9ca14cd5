package env

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
)

// lending is how a pool answers: with what a borrower needs to know of a cluster, or with an error.
type lending struct {
	Error     string
	Dir       string // of the control plane's files
	Bin       string
	Port      int
	Authority []byte // PEM, as Key
	Key       []byte
}

// lending returns what a borrower needs to know of the cluster.
func (c *Cluster) lending() (lending, error) {
	key, ok := c.authority.key.(*ecdsa.PrivateKey)
	if !ok {
		return lending{}, fmt.Errorf("lend cluster: its authority has a key of type %T", c.authority.key)
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return lending{}, fmt.Errorf("lend cluster: %w", err)
	}
	return lending{Dir: c.dir, Bin: c.bin, Port: c.port.number, Authority: c.authority.pem, Key: encoded}, nil
}

// loan is a borrowed cluster's connection to its pool, which has the cluster back when it ends.
type loan struct {
	conn net.Conn

	mu      sync.Mutex
	calls   *json.Encoder
	answers *json.Decoder
}

// startOrBorrow starts a cluster, or borrows one where there is a pool.
func startOrBorrow(ctx context.Context, o Options) (*Cluster, error) {
	socket := os.Getenv(poolVariable)
	if socket == "" || o.Own {
		return StartCluster(ctx, o)
	}
	if o.Name == "" {
		o.Name = "cluster"
	}
	c, err := borrow(ctx, socket, o)
	if err != nil {
		return nil, fmt.Errorf("borrow cluster %s: %w", o.Name, err)
	}
	return c, nil
}

func borrow(ctx context.Context, socket string, o Options) (*Cluster, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: o, loan: &loan{conn: conn, calls: json.NewEncoder(conn), answers: json.NewDecoder(conn)}}
	// StopAll leaves it alone: only the end of this process ends all that may still write to it.
	c.forget = func() {}
	if err := c.setUpBorrowed(ctx); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// setUpBorrowed asks for a cluster, and sets up what its borrower has of his own.
func (c *Cluster) setUpBorrowed(ctx context.Context) error {
	wanted, later := c.options, []string(nil)
	var err error
	if wanted.CRDs, err = absolute(c.options.CRDs); err != nil {
		return err
	}
	if wanted.NoControllers {
		wanted.CRDs, later = nil, wanted.CRDs // there is no process for which they would come too late
	}
	terms, err := c.loan.ask(wanted)
	if err != nil {
		return err
	}
	c.dir, c.bin, c.port = terms.Dir, terms.Bin, &port{number: terms.Port}
	if c.authority, err = parseAuthority(terms.Authority, terms.Key); err != nil {
		return err
	}
	if c.home, err = tempDir(c.options.Name); err != nil {
		return err
	}
	if err := c.prepareAdmin(); err != nil {
		return err
	}
	info, err := os.Stat(c.file(auditLogFile))
	if err != nil {
		return err
	}
	c.audit.marked.offset = info.Size() // what is before is not of this borrower
	return c.InstallCRDs(ctx, later...)
}

// call has the pool do something with the cluster.
func (l *loan) call(what string) error {
	_, err := l.ask(what)
	return err
}

func (l *loan) ask(what any) (lending, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var answer lending
	if err := l.calls.Encode(what); err != nil {
		return answer, fmt.Errorf("ask pool of clusters: %w", err)
	}
	if err := l.answers.Decode(&answer); err != nil {
		return answer, fmt.Errorf("ask pool of clusters: %w", err)
	}
	if answer.Error != "" {
		return answer, errors.New(answer.Error)
	}
	return answer, nil
}

// end returns when the pool has the cluster back.
func (l *loan) end() {
	if conn, ok := l.conn.(*net.UnixConn); ok && conn.CloseWrite() == nil {
		_ = l.answers.Decode(&lending{}) // fails if nothing was lent
	}
	_ = l.conn.Close()
}

// parseAuthority is the reverse of what a lending has of an authority.
func parseAuthority(certificate, key []byte) (*authority, error) {
	certBlock, _ := pem.Decode(certificate)
	keyBlock, _ := pem.Decode(key)
	if certBlock == nil || keyBlock == nil {
		return nil, errors.New("parse authority: it is not PEM")
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse authority: %w", err)
	}
	signer, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse key of authority: %w", err)
	}
	return &authority{cert: cert, key: signer, pem: certificate}, nil
}
