// Package kubelet stands in for the kubelets of a cluster whose Pods kwok keeps: it runs commands that
// tests, or the product, execute in Pods through the API server.
//
// A command runs on this machine, as the user that runs the tests, in a directory of the Pod's container
// where each mounted claim is at its mountPath: a claim mounted at /data is the folder data. Commands
// name files by relative paths, then. A claim has the files of its volume, an emptyDir a folder of the
// Pod; other volumes are not there. Of the environment there are the container's own variables that have
// a plain value.
//
// As with real ones, a command goes on when its caller has gone away, and ends with SIGKILL when its Pod
// is deleted or ends, or its container's restartCount rises. What a command leaves running in the background
// is killed with it, which is not so with real ones.
package kubelet
