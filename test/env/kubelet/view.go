package kubelet

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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// searchPath is where commands are looked for.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// view is what a container sees of the machine.
type view struct {
	root    string   // stands for its root directory
	dir     string   // where commands start
	env     []string // their environment
	folders []string // of claims that can be written to, sorted
}

// command returns the command with these arguments, not started.
func (v view) command(args []string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = v.dir, v.env
	return cmd
}

// view creates what the container sees, or brings it up to date.
func (k *Kubelet) view(ctx context.Context, pod *corev1.Pod, containerName string) (view, error) {
	i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == containerName })
	if i < 0 {
		return view{}, fmt.Errorf("container not found (%q)", containerName)
	}
	container := pod.Spec.Containers[i]
	v := view{root: filepath.Join(k.podDir(pod), "containers", containerName)}
	mounts := map[string]string{} // folders by where they are mounted
	for _, mount := range container.VolumeMounts {
		folder, claim, err := k.folder(ctx, pod, mount.Name)
		if err != nil {
			return view{}, fmt.Errorf("mount %s: %w", mount.MountPath, err)
		}
		if folder == "" {
			continue
		}
		if claim && !mount.ReadOnly {
			v.folders = append(v.folders, folder)
		}
		mounts[filepath.Clean("/"+mount.MountPath)] = filepath.Join(folder, filepath.Clean("/"+mount.SubPath))
	}
	v.folders = slices.Compact(slices.Sorted(slices.Values(v.folders)))
	v.dir = filepath.Join(v.root, filepath.Clean("/"+container.WorkingDir))
	v.env = environment(pod, container, v.root)
	return v, k.mount(v, mounts)
}

// folder returns the folder of a Pod's volume, and whether it is a claim's; empty if the volume is of a
// kind that has none here.
func (k *Kubelet) folder(ctx context.Context, pod *corev1.Pod, volumeName string) (folder string, claim bool, err error) {
	i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volumeName })
	if i < 0 {
		return "", false, fmt.Errorf("the Pod has no volume %s", volumeName)
	}
	volume := pod.Spec.Volumes[i]
	var claimName string
	switch {
	case volume.PersistentVolumeClaim != nil:
		claimName = volume.PersistentVolumeClaim.ClaimName
	case volume.Ephemeral != nil:
		claimName = pod.Name + "-" + volume.Name
	case volume.EmptyDir != nil:
		return filepath.Join(k.podDir(pod), "volumes", volume.Name), false, nil
	default:
		return "", false, nil
	}
	bound, err := k.options.Client.CoreV1().PersistentVolumeClaims(pod.Namespace).Get(ctx, claimName, metav1.GetOptions{})
	if err != nil {
		return "", false, err
	}
	if bound.Spec.VolumeName == "" {
		return "", false, fmt.Errorf("claim %s is not bound", claimName)
	}
	pv, err := k.options.Client.CoreV1().PersistentVolumes().Get(ctx, bound.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return "", false, err
	}
	folder, err = k.options.Folder(pv)
	return folder, true, err
}

// environment returns the variables of a container that have a plain value, and what a container always
// has.
func environment(pod *corev1.Pod, container corev1.Container, root string) []string {
	env := []string{"PATH=" + searchPath, "HOME=" + root, "HOSTNAME=" + pod.Name}
	for _, variable := range container.Env {
		if variable.ValueFrom == nil {
			env = append(env, variable.Name+"="+variable.Value)
		}
	}
	return env
}

// mount makes the folders visible below the view's root, by symbolic links.
func (k *Kubelet) mount(v view, mounts map[string]string) error {
	k.views.Lock()
	defer k.views.Unlock()
	for path, folder := range mounts {
		for other := range mounts {
			if strings.HasPrefix(other, strings.TrimSuffix(path, "/")+"/") && other != path {
				return fmt.Errorf("%s is mounted below %s, which only a real kubelet can do", other, path)
			}
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("create folder of volume: %w", err)
		}
		if err := link(filepath.Join(v.root, path), folder); err != nil {
			return fmt.Errorf("mount %s: %w", path, err)
		}
	}
	return os.MkdirAll(v.dir, 0o755)
}

// link makes path a symbolic link to target, whatever it led to before.
func link(path, target string) error {
	now, err := os.Readlink(path)
	if err == nil && now == target {
		return nil
	}
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.Symlink(target, path)
}
