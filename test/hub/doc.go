// Package hub runs controllers against a real API server for the tests of their behaviour:
// one shared hub per test binary, a namespace and a git repository per test.
package hub
