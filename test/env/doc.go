// Package env starts the real servers that tests, the demo and the benchmarks run against:
// Kubernetes control planes built from their Go modules, a git server, Helm repositories and OCI
// registries.
//
// Everything listens on a free port of 127.0.0.1, so that several processes can use the package
// side by side. Everything ends with the process that started it: children die with their parent
// even if it is killed (on Linux), and the next process removes directories that a killed one left
// behind.
//
// A test package that shares clusters between its tests declares
//
//	func TestMain(m *testing.M) { env.Main(m) }
//
// and gets them from Shared, or one of its own from Start. `make test` runs all packages with a Pool,
// which both then borrow from: clusters that are like new, and fewer starts. Package volumes, below this
// one, adds volumes with snapshots, and commands that run in Pods. Other programs call StartCluster,
// StartGitServer and so on, and
// StopAll when they end.
package env
