package logging_test

import (
	"log"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/cmd/internal/logging"
)

// C33: values may hold secrets, which no log shows.
func TestWriter_keepsValuesOutOfTheLog(t *testing.T) {
	cases := map[string]struct {
		reason string
		line   string
		want   []string
	}{
		"Warning": {
			reason: "what a library says is not lost",
			line:   "skipping loading invalid entry for chart web",
			want:   []string{`"level"=0 "msg"="skipping loading invalid entry for chart web"`},
		},
		"Value": {
			reason: "Helm prints values in brackets",
			line:   "warning: cannot overwrite table with non table for web.auth (map[password:hunter2])",
			want:   []string{`"level"=0 "msg"="warning: cannot overwrite table with non table for web.auth (...)"`},
		},
		"Template": {reason: "a template may say anything", line: "[INFO] Fail: the password hunter2 is too short"},
		"Nothing":  {reason: "an empty line says nothing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var lines []string
			l := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
			log.New(&logging.Writer{Log: l}, "", 0).Print(tc.line)
			assert.Equal(t, tc.want, lines, tc.reason)
		})
	}
}
