package dashboard

import (
	"context"
	"errors"
	"html/template"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// signpost is a page that leads to an address.
var signpost = template.Must(template.New("signpost").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={{.}}">
<title>Waybill</title>
</head>
<body><main><h1>Waybill</h1><p><a href="{{.}}">Open the dashboard</a></p></main></body>
</html>
`))

// openBrowser opens an address in the browser of the user, if there is one, and returns when the address is of no use any more: it was
// redeemed, or ctx has ended. All users of the machine see the arguments of its programs, and the address has a token: what is
// opened is a file of this user alone, which leads there, and which is gone when it returns.
func openBrowser(ctx context.Context, address string, redeemed <-chan struct{}) error {
	folder, err := os.MkdirTemp("", "waybill-dashboard-") // with mode 0700
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }() // what may be left is of no use
	file := filepath.Join(folder, "open.html")
	if err := writeSignpost(file, address); err != nil {
		return err
	}
	if err := opener(ctx, file).Start(); err != nil {
		return err
	}
	select {
	case <-redeemed:
	case <-ctx.Done():
	}
	return nil
}

func writeSignpost(file, address string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(signpost.Execute(f, address), f.Close())
}

// opener is the program that opens a file in the browser.
func opener(ctx context.Context, file string) *exec.Cmd {
	switch runtime.GOOS {
	case "darwin":
		return exec.CommandContext(ctx, "open", file)
	case "windows":
		return exec.CommandContext(ctx, "rundll32", "url.dll,FileProtocolHandler", file)
	default:
		return exec.CommandContext(ctx, "xdg-open", file)
	}
}
