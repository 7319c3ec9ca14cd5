// Package hub runs controllers against a real API server to test their behaviour: with one shared
// hub per test binary, and a namespace and a git repository per test.
package hub
