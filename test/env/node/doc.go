/*
Package node gives a cluster of package env a real Node: containerd, runc and the kubelet on this
machine, with Pods that are real processes.

	node.Require(t)
	n, err := node.Start(ctx, cluster, node.Options{Images: []string{postgres}})

It needs root on Linux with cgroup v1, and Debian's packages containerd, runc, containernetworking-plugins
and iproute2. Everything of the Node runs in a mount and a process namespace of its own: when its first
process is killed, so are all others, and all mounts are gone. What is left to remove are cgroups, a
bridge, and the settings of the kernel that a kubelet changes; Stop, which is called when the cluster
stops, does that.

Pods reach each other and the Node, and nothing else. Images are not pulled: see Image.
*/
package node
