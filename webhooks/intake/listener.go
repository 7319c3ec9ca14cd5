package intake

import (
	"net"
	"sync"
)

const (
	// maxConnections is how many connections may be open. An API server has one or two, and keeps
	// them, whatever others do.
	maxConnections = 512

	// maxPerAddress is how many of them one address may have.
	maxPerAddress = 64
)

// limited is a listener that closes connections that are too many at once.
type limited struct {
	net.Listener

	mu        sync.Mutex
	open      int
	byAddress map[string]int
}

func newLimited(l net.Listener) *limited {
	return &limited{Listener: l, byAddress: map[string]int{}}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address := conn.RemoteAddr().String()
		if host, _, err := net.SplitHostPort(address); err == nil {
			address = host
		}
		if l.add(address) {
			return &counted{Conn: conn, closed: sync.OnceFunc(func() { l.remove(address) })}, nil
		}
		_ = conn.Close()
	}
}

func (l *limited) add(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= maxConnections || l.byAddress[address] >= maxPerAddress {
		return false
	}
	l.open++
	l.byAddress[address]++
	return true
}

func (l *limited) remove(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.byAddress[address]--; l.byAddress[address] == 0 {
		delete(l.byAddress, address)
	}
}

// counted is a connection that counts until it is closed.
type counted struct {
	net.Conn
	closed func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.closed()
	return c.Conn.Close()
}
