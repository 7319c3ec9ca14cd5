// Package env starts the real peers that tests, the demo and the benchmarks run
// against: Kubernetes control planes built from their Go modules, a git server,
// Helm repositories and OCI registries.
//
// Everything listens on a free port of 127.0.0.1, so several processes may use
// the package side by side. What was started ends with the process: children die
// with their parent even when it is killed (on Linux), and directories that a
// killed process left behind are removed by the next one that starts.
//
// A test package that shares clusters between its tests has
//
//	func TestMain(m *testing.M) { env.Main(m) }
//
// and asks for them with Shared. Anything else calls StartCluster,
// StartGitServer and so on, and StopAll at its end.
package env
