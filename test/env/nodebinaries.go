package env

import "context"

var nodePrograms = programSet{
	name:     "kubelet",
	folder:   "node",
	module:   nodeModule,
	version:  "k8s.io/kubernetes",
	programs: []program{{"kubelet", "k8s.io/kubernetes/cmd/kubelet", "kubelet"}},
	files:    func(context.Context, string, string) error { return nil },
}

// NodeBinaries returns the directory that holds the kubelet. As Binaries does, it builds it where it is
// missing, from the module test/controlplane/node into bin/k8s/node.
func NodeBinaries(ctx context.Context) (string, error) {
	return nodePrograms.ready(ctx)
}
