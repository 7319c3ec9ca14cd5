package env

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// port is a TCP port of 127.0.0.1 that stays reserved between two servers on it: a bound socket
// that never listens holds it, and servers share it by SO_REUSEPORT. Connections are refused while
// there is no server, as if a server had died.
type port struct {
	number int
	holder int // file descriptor
}

func reservePort() (*port, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, fmt.Errorf("reserve port: %w", err)
	}
	unix.CloseOnExec(fd)
	number, err := bind(fd)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reserve port: %w", err), unix.Close(fd))
	}
	return &port{number: number, holder: fd}, nil
}

func bind(fd int) (int, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	address, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	return address.(*unix.SockaddrInet4).Port, nil
}

// The range of ports of FreeAddress, for programs that cannot share a reservation. It is below the
// ephemeral ports of the kernel, so that no connection takes one before the program listens.
const (
	firstFreePort = 20_000
	freePorts     = 10_000
)

// given holds the locks of the addresses that this process has handed out.
var given struct {
	sync.Mutex
	locks []*os.File
}

// FreeAddress returns an address of 127.0.0.1 that no process listens on, and that no other call
// returns, in any process, as long as this process lives.
func FreeAddress() (string, error) {
	base, err := baseDir()
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	for range freePorts {
		number := firstFreePort + rand.IntN(freePorts)
		lock, err := lockFile(filepath.Join(base, fmt.Sprintf("port-%d", number)), try)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("find a free port: %w", err)
		}
		address := fmt.Sprintf("127.0.0.1:%d", number)
		l, err := net.Listen("tcp4", address)
		if err != nil {
			_ = lock.Close()
			continue
		}
		given.Lock()
		defer given.Unlock()
		given.locks = append(given.locks, lock)
		return address, l.Close()
	}
	return "", errors.New("find a free port: all are taken")
}

// addr returns the port as host:port.
func (p *port) addr() string { return fmt.Sprintf("127.0.0.1:%d", p.number) }

// listen listens on the port. There must be at most one listener at a time, or the kernel
// distributes connections between them.
func (p *port) listen() (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		return errors.Join(c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		}), err)
	}}
	l, err := config.Listen(context.Background(), "tcp4", p.addr())
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", p.addr(), err)
	}
	return l, nil
}

// release returns the port to the system.
func (p *port) release() { _ = unix.Close(p.holder) }
