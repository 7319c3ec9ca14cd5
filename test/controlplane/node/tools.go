//go:build tools

package node

import _ "k8s.io/kubernetes/cmd/kubelet"
