package startup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ExitCode says what went wrong, if anything did, and returns the code that the program ends
// with: 0 or 1. Who asked for help has got it, which is no failure.
func ExitCode(stderr io.Writer, program string, err error) int {
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	_, _ = fmt.Fprintf(stderr, "%s: %v\n", program, err) // there is nobody left to tell
	return 1
}

// Parse reads flags, and refuses everything that is none: a program that is called with more
// than it knows does not do what its caller meant. Asked for help it prints that, and returns
// pflag.ErrHelp.
func Parse(flags *pflag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return nil
}

// LoadConfig returns how to reach the API server: by the file, else by $KUBECONFIG, else as the
// ServiceAccount of the Pod. ~/.kube/config is not read: a program that is started to see what
// it does must not take the cluster at hand for its hub. Rate limits are left to the API server, which knows better
// (priority and fairness); the user agent is program/version.
func LoadConfig(kubeconfig, program, version string) (*rest.Config, error) {
	rules := &clientcmd.ClientConfigLoadingRules{
		ExplicitPath: kubeconfig,
		Precedence:   filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar)),
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("load kubeconfig: this is no Pod, and neither --kubeconfig nor $KUBECONFIG is given")
	}
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig: %w", err)
	}
	config.QPS = -1
	config.UserAgent = program + "/" + version
	return config, nil
}
