// Package output writes results: tables for people, JSON and YAML for programs.
package output
