package kubelet

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// pauseLimit is how long processes may take to stop. One that waits for a disk does not stop before the
// disk has answered.
const pauseLimit = 10 * time.Second

// Pause stops the commands that could write to the folders, as a freezer of containers does, and keeps
// others from starting, until resume is called.
func (k *Kubelet) Pause(folders ...string) (resume func(), err error) {
	folders = slices.Compact(slices.Sorted(slices.Values(folders)))
	unlock := k.lock(folders, (*sync.RWMutex).Lock, (*sync.RWMutex).Unlock)
	var paused []*command
	resume = func() {
		for _, c := range paused {
			c.resume()
		}
		unlock()
	}
	k.mu.Lock()
	for c := range k.running {
		if slices.ContainsFunc(c.folders, func(f string) bool { return slices.Contains(folders, f) }) {
			paused = append(paused, c)
		}
	}
	k.mu.Unlock()
	for _, c := range paused {
		c.pause()
	}
	for _, c := range paused {
		if err := c.awaitPaused(); err != nil {
			resume()
			return nil, err
		}
	}
	return resume, nil
}

// lock locks each of the folders, which are sorted so that two callers cannot wait for each other.
func (k *Kubelet) lock(folders []string, lock, unlock func(*sync.RWMutex)) func() {
	locks := make([]*sync.RWMutex, len(folders))
	for i, folder := range folders {
		l, _ := k.folders.LoadOrStore(folder, &sync.RWMutex{})
		locks[i] = l.(*sync.RWMutex)
		lock(locks[i])
	}
	return func() {
		for _, l := range locks {
			unlock(l)
		}
	}
}

func (c *command) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pauses++
	c.send(syscall.SIGSTOP)
}

// resume lets the command go on when the last of those that paused it resumes it.
func (c *command) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pauses--
	if c.pauses == 0 {
		c.send(syscall.SIGCONT)
	}
}

// awaitPaused returns when every process of the command has stopped or ended. Elsewhere than on Linux
// that is not known.
func (c *command) awaitPaused() error {
	if runtime.GOOS != "linux" {
		return nil
	}
	deadline := time.Now().Add(pauseLimit)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		c.mu.Lock()
		group := c.group
		c.mu.Unlock()
		active, err := activeIn(group)
		if err != nil || active == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d does not stop", active)
		}
		<-tick.C
	}
}

// activeIn returns a process of the group that has neither stopped nor ended; 0 if there is none.
func activeIn(group int) (int, error) {
	if group == 0 {
		return 0, nil
	}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state ppid pgrp; the name may hold anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 3 || string(fields[2]) != strconv.Itoa(group) {
			continue
		}
		if !bytes.ContainsAny(fields[0], "TtZX") {
			return strconv.Atoi(filepath.Base(filepath.Dir(file)))
		}
	}
	return 0, nil
}
