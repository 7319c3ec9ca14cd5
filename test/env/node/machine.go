//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// mostNodes is how many Nodes there can be on one machine.
const mostNodes = 8

// network is the bridge of one Node, with a range of addresses. The process that holds the lock has it.
type network struct {
	name    string // of the bridge, and of the Node
	address string // of the Node
	subnet  string
	lock    *os.File
}

// reserveNetwork creates the first bridge that no living process has.
func reserveNetwork(ctx context.Context) (*network, error) {
	for i := range mostNodes {
		lock, err := os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("waybill-node-%d.lock", i)), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("reserve network: %w", err)
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			_ = lock.Close()
			continue
		}
		n := &network{name: fmt.Sprintf("node-%d", i), address: fmt.Sprintf("10.88.%d.1", i), subnet: fmt.Sprintf("10.88.%d.0/24", i), lock: lock}
		n.remove() // of a process that was killed
		for _, args := range [][]string{
			{"link", "add", n.name, "type", "bridge"},
			{"addr", "add", n.address + "/24", "dev", n.name},
			{"link", "set", n.name, "up"},
		} {
			if out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
				n.release()
				return nil, fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
			}
		}
		return n, nil
	}
	return nil, fmt.Errorf("there are %d Nodes on this machine already", mostNodes)
}

func (n *network) remove() { _ = exec.Command("ip", "link", "delete", n.name).Run() } // it may not exist

func (n *network) release() {
	n.remove()
	_ = n.lock.Close()
}

// cgroups is the name of a control group, below which all Pods of a Node are, in every hierarchy.
type cgroups string

// hierarchies returns the roots of all hierarchies of cgroup v1.
func hierarchies() []string {
	names := []string{"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "systemd", "hugetlb", "unified"}
	roots := make([]string, 0, len(names))
	for _, name := range names {
		root := filepath.Join("/sys/fs/cgroup", name)
		if _, err := os.Stat(root); err == nil {
			roots = append(roots, root)
		}
	}
	return roots
}

func (c cgroups) create() error {
	c.remove() // of a process that was killed
	for _, root := range hierarchies() {
		group := filepath.Join(root, string(c))
		if err := os.MkdirAll(group, 0o755); err != nil {
			return fmt.Errorf("create cgroup: %w", err)
		}
		if filepath.Base(root) != "cpuset" {
			continue
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			content, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				return fmt.Errorf("read %s: %w", file, err)
			}
			if err := os.WriteFile(filepath.Join(group, file), content, 0o600); err != nil {
				return fmt.Errorf("write %s: %w", file, err)
			}
		}
	}
	return nil
}

// remove removes the groups as soon as their processes are gone.
func (c cgroups) remove() {
	if c == "" {
		return
	}
	for _, root := range hierarchies() {
		var folders []string
		_ = filepath.WalkDir(filepath.Join(root, string(c)), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				folders = append(folders, path)
			}
			return nil
		})
		for _, folder := range slices.Backward(folders) {
			_ = wait.PollUntilContextTimeout(context.Background(), 20*time.Millisecond, 2*time.Second, true, func(context.Context) (bool, error) {
				return !errors.Is(syscall.Rmdir(folder), syscall.EBUSY), nil // the kernel may still be ending them
			})
		}
	}
}

// freeze stops all processes of the groups until thaw is called.
func (c cgroups) freeze() (thaw func(), err error) {
	file := filepath.Join("/sys/fs/cgroup/freezer", string(c), "freezer.state")
	thaw = func() { _ = os.WriteFile(file, []byte("THAWED"), 0o600) } // fails only if the group is gone
	if err := os.WriteFile(file, []byte("FROZEN"), 0o600); err != nil {
		return nil, fmt.Errorf("freeze Pods: %w", err)
	}
	err = wait.PollUntilContextTimeout(context.Background(), time.Millisecond, 5*time.Second, true, func(context.Context) (bool, error) {
		state, err := os.ReadFile(file)
		return strings.TrimSpace(string(state)) == "FROZEN", err
	})
	if err != nil {
		thaw()
		return nil, fmt.Errorf("freeze Pods: %w", err)
	}
	return thaw, nil
}

// settings are those of the kernel that a kubelet changes, for the whole machine.
type settings map[string][]byte

func rememberSettings() settings {
	s := settings{}
	for _, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"} {
		file := filepath.Join("/proc/sys", name)
		if content, err := os.ReadFile(file); err == nil {
			s[file] = content
		}
	}
	return s
}

func (s settings) restore() {
	for file, content := range s {
		if now, err := os.ReadFile(file); err == nil && string(now) != string(content) {
			_ = os.WriteFile(file, content, 0o600) // root may write all of them
		}
	}
}

// Pause stops all Pods of the Node. Resume lets them go on.
func (n *Node) Pause(...string) (resume func(), err error) { return n.groups.freeze() }

// Bind mounts a folder of this machine where the kubelet sees it.
func (n *Node) Bind(ctx context.Context, folder, target string) error {
	if err := os.MkdirAll(target, 0o750); err != nil {
		return err
	}
	return n.Run(ctx, "mount", "--bind", folder, target)
}

// Unmount is the opposite of Bind; it is no error if nothing is mounted.
func (n *Node) Unmount(ctx context.Context, target string) error {
	if n.Run(ctx, "mountpoint", "--quiet", target) == nil {
		if err := n.Run(ctx, "umount", target); err != nil {
			return err
		}
	}
	return os.RemoveAll(target)
}
