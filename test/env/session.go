package env

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// session holds everything that this process runs, and the directory for all of it. There is one
// per process, because clean-up is per process.
var session struct {
	sync.Mutex
	dir     string
	lock    *os.File
	next    int
	running map[int]func()
}

// StopAll stops everything that this package started in this process and removes
// its files. Starting something afterwards is allowed.
func StopAll() {
	for {
		session.Lock()
		stops := make([]func(), 0, len(session.running))
		for _, stop := range session.running {
			stops = append(stops, stop)
		}
		clear(session.running)
		session.Unlock()
		if len(stops) == 0 {
			break
		}
		var wg sync.WaitGroup
		for _, stop := range stops {
			wg.Go(stop)
		}
		wg.Wait()
	}
	session.Lock()
	defer session.Unlock()
	if session.dir != "" {
		_ = os.RemoveAll(session.dir) // the next process reaps what is left
		_ = session.lock.Close()
		session.dir, session.lock = "", nil
	}
}

// StopOnSignal runs StopAll and exits with the shell's code for a signal when
// SIGINT or SIGTERM arrives.
func StopOnSignal() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		s := <-signals
		signal.Stop(signals) // a second Ctrl-C ends the process at once
		StopAll()
		code := 1
		if n, ok := s.(syscall.Signal); ok {
			code = 128 + int(n)
		}
		os.Exit(code)
	}()
}

// track makes StopAll call stop, unless forget is called first. stop may be called from another
// goroutine, and must be safe to call twice.
func track(stop func()) (forget func()) {
	session.Lock()
	defer session.Unlock()
	if session.running == nil {
		session.running = map[int]func(){}
	}
	session.next++
	id := session.next
	session.running[id] = stop
	return func() {
		session.Lock()
		defer session.Unlock()
		delete(session.running, id)
	}
}

// tempDir creates a directory that is removed with this process.
func tempDir(name string) (string, error) {
	session.Lock()
	defer session.Unlock()
	if session.dir == "" {
		if err := openSession(); err != nil {
			return "", fmt.Errorf("create directory for %s: %w", name, err)
		}
	}
	session.next++
	dir := filepath.Join(session.dir, name+"-"+strconv.Itoa(session.next))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create directory for %s: %w", name, err)
	}
	return dir, nil
}

// openSession creates this process's directory, locked for as long as the process lives, and
// removes those whose owner has died. Both happen under one lock: a directory without a locked
// owner is a dead one.
func openSession() error {
	base, err := baseDir()
	if err != nil {
		return err
	}
	guard, err := lockFile(filepath.Join(base, "lock"), wait)
	if err != nil {
		return err
	}
	defer func() { _ = guard.Close() }()
	reap(base)
	dir, err := os.MkdirTemp(base, "run-")
	if err != nil {
		return err
	}
	lock, err := lockFile(filepath.Join(dir, "owner"), wait)
	if err != nil {
		return err
	}
	session.dir, session.lock = dir, lock
	return nil
}

// baseDir creates the directory that all processes of this user share.
func baseDir() (string, error) {
	base := filepath.Join(os.TempDir(), fmt.Sprintf("waybill-env-%d", os.Getuid()))
	return base, os.MkdirAll(base, 0o700)
}

// reap removes the directories of processes that ended without StopAll.
func reap(base string) {
	dirs, _ := filepath.Glob(filepath.Join(base, "run-*")) // the pattern is constant and valid
	for _, dir := range dirs {
		owner, err := lockFile(filepath.Join(dir, "owner"), try)
		if err != nil {
			continue
		}
		_ = os.RemoveAll(dir)
		_ = owner.Close()
	}
}

type lockMode int

const (
	wait lockMode = syscall.LOCK_EX
	try  lockMode = syscall.LOCK_EX | syscall.LOCK_NB
)

// lockFile locks path against other processes until the returned file is closed or this process
// dies.
func lockFile(path string, mode lockMode) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), int(mode))
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f, nil
}
