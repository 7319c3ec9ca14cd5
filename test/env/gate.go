package env

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Gate is a TCP proxy in front of a server that can make it look dead, hanging or slow. It starts
// open.
type Gate struct {
	port   *port
	target string
	forget func()

	mu       sync.Mutex
	state    gateState
	delay    time.Duration
	changed  chan struct{} // closed and replaced when state changes
	listener net.Listener  // nil while shut or closed
	conns    map[net.Conn]struct{}
}

type gateState int

const (
	gateOpen gateState = iota
	gateHanging
	gateShut
	gateClosed
)

// NewGate listens on a free port of 127.0.0.1 and forwards to target, a host:port.
func NewGate(target string) (*Gate, error) {
	p, err := reservePort()
	if err != nil {
		return nil, err
	}
	g := &Gate{port: p, target: target, changed: make(chan struct{}), conns: map[net.Conn]struct{}{}, state: gateShut}
	if err := g.Open(); err != nil {
		p.release()
		return nil, err
	}
	g.forget = track(g.Close)
	return g, nil
}

// Address returns the host:port that the gate listens on. It never changes.
func (g *Gate) Address() string { return g.port.addr() }

// Open forwards everything, including data that was held back while the gate was hanging.
func (g *Gate) Open() error { return g.listen(gateOpen) }

// Hang accepts connections but never answers; existing ones get no more data.
func (g *Gate) Hang() error { return g.listen(gateHanging) }

// Shut refuses connections and cuts existing ones, as if the server had died.
func (g *Gate) Shut() { g.stop(gateShut) }

// Slow delays every answer of the server by d, until Slow(0).
func (g *Gate) Slow(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.delay = d
}

// Close ends the gate for good. Closing twice is allowed.
func (g *Gate) Close() {
	if g.stop(gateClosed) {
		g.port.release()
		g.forget()
	}
}

func (g *Gate) listen(state gateState) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state == gateClosed {
		return errors.New("use gate: it is closed")
	}
	if g.listener == nil {
		l, err := g.port.listen()
		if err != nil {
			return err
		}
		g.listener = l
		go g.accept(l)
	}
	g.set(state)
	return nil
}

// stop changes the state, and reports whether the gate was not closed before.
func (g *Gate) stop(state gateState) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state == gateClosed {
		return false
	}
	if g.listener != nil {
		_ = g.listener.Close()
		g.listener = nil
	}
	for conn := range g.conns {
		_ = conn.Close()
	}
	clear(g.conns)
	g.set(state)
	return true
}

// set changes the state. The caller holds the lock.
func (g *Gate) set(state gateState) {
	g.state = state
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *Gate) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		if g.add(conn) {
			go g.serve(conn)
		}
	}
}

func (g *Gate) serve(client net.Conn) {
	defer g.drop(client)
	if !g.pass() {
		return
	}
	server, err := net.Dial("tcp", g.target)
	if err != nil || !g.add(server) {
		return
	}
	defer g.drop(server)
	var both sync.WaitGroup
	both.Go(func() { g.forward(server, client, false) })
	both.Go(func() { g.forward(client, server, true) })
	both.Wait()
}

// forward copies until src ends, and then ends dst in the same way.
func (g *Gate) forward(dst, src net.Conn, answers bool) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := src.Read(buffer)
		if n > 0 {
			if answers {
				g.holdBack()
			}
			if !g.pass() {
				return
			}
			if _, err := dst.Write(buffer[:n]); err != nil {
				_ = src.Close()
				return
			}
		}
		if err != nil {
			end(dst, err)
			return
		}
	}
}

// end ends a connection as the other side ended: with a half-close after a half-close, and
// completely after a failure.
func end(conn net.Conn, err error) {
	if tcp, ok := conn.(*net.TCPConn); ok && errors.Is(err, io.EOF) {
		_ = tcp.CloseWrite()
		return
	}
	_ = conn.Close()
}

func (g *Gate) holdBack() {
	g.mu.Lock()
	delay := g.delay
	g.mu.Unlock()
	if delay > 0 {
		<-time.After(delay)
	}
}

// pass waits while the gate hangs and reports whether it is open.
func (g *Gate) pass() bool {
	for {
		g.mu.Lock()
		state, changed := g.state, g.changed
		g.mu.Unlock()
		if state != gateHanging {
			return state == gateOpen
		}
		<-changed
	}
}

// add remembers a connection that Shut has to cut; it returns false if it is too late.
func (g *Gate) add(conn net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state == gateShut || g.state == gateClosed {
		_ = conn.Close()
		return false
	}
	g.conns[conn] = struct{}{}
	return true
}

func (g *Gate) drop(conn net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, conn)
	_ = conn.Close()
}
