package hook

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// S64: a command that no container runtime can start is not worth another try. What may pass is.
func TestNotRunnable_isWhatRuntimesSay(t *testing.T) {
	const start = "Internal error occurred: error executing command in container: "
	for message, want := range map[string]bool{
		start + `failed to start exec "1": OCI runtime exec failed: exec failed: unable to start container process: exec: "unlock": executable file not found in $PATH: unknown`:               true,
		start + `failed to start exec "1": OCI runtime exec failed: exec failed: unable to start container process: exec: "/bin/unlock": stat /bin/unlock: no such file or directory: unknown`: true,
		start + `failed to start exec "1": OCI runtime exec failed: exec failed: unable to start container process: exec: "/etc/passwd": permission denied: unknown`:                           true,
		start + "exec failed: executable file `unlock` not found in $PATH: No such file or directory: OCI runtime attempted to invoke a command that was not found":                            true,
		start + `exec failed: unable to start container process: exec /bin/unlock: exec format error`:                                                                                          true,
		start + `OCI runtime exec failed: exec failed: unable to start container process: error executing setns process: exit status 1: unknown`:                                               false,
		start + `failed to create shim task: fork/exec /usr/bin/containerd-shim: resource temporarily unavailable`:                                                                             false,
		start + `container not found ("main")`:                                        false,
		"error dialing backend: dial tcp 10.0.0.1:10250: connect: connection refused": false,
	} {
		assert.Equal(t, want, notRunnable.MatchString(message), message)
	}
}
