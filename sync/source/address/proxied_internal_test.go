package address

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A proxy resolves names itself: of what it is asked for, only what is plain to see can be refused.
func TestGuard_checksWhatAProxyIsAskedFor(t *testing.T) {
	cases := map[string]bool{
		"127.0.0.1": false, "::1": false, "[::1]": false, "169.254.169.254": false,
		"localhost": false, "LOCALHOST.": false, "a.localhost": false,
		"git.example.com": true, "10.0.0.1": true, "notlocalhost": true,
	}
	for host, want := range cases {
		assert.Equal(t, want, Guard{Refuse: true}.checkHost(host) == nil, host)
		assert.NoError(t, Guard{}.checkHost(host), host)
	}
}
