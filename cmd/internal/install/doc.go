// Package install writes ApplicationInstallations, follows what becomes of them, and shows their
// history, their values and what can be installed. It writes nothing but the custom resources.
package install
