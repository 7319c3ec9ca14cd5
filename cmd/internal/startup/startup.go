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

// ExitCode prints err, if there is one, and returns the exit code of the program: 0 or 1. A request
// for help has been answered already and is not a failure.
func ExitCode(stderr io.Writer, program string, err error) int {
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	_, _ = fmt.Fprintf(stderr, "%s: %v\n", program, err) // there is nowhere left to report this
	return 1
}

// Parse reads flags, and rejects all other arguments: a program that is given arguments it does not
// know does not do what its caller meant. If asked for help, it prints it and returns
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

// LoadConfig returns the configuration for reaching the API server: from the file, else from
// $KUBECONFIG, else from the ServiceAccount of the Pod. ~/.kube/config is not read: a program that
// is started just to try it out must not use the cluster at hand as its hub. Rate limiting is left
// to the API server, which knows better (priority and fairness); the user agent is program/version.
func LoadConfig(kubeconfig, program, version string) (*rest.Config, error) {
	rules := &clientcmd.ClientConfigLoadingRules{
		ExplicitPath: kubeconfig, Precedence: filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar)),
	}
	if err := CheckKubeconfig(kubeconfig); err != nil {
		return nil, err
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("load kubeconfig: not running in a Pod, and neither --kubeconfig nor $KUBECONFIG is given")
	}
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig: %w", err)
	}
	config.QPS = -1
	config.UserAgent = program + "/" + version
	return config, nil
}

// CheckKubeconfig returns an error if no file is given, and $KUBECONFIG names only files that do not
// exist. Those are skipped otherwise, and another cluster is taken in their place: in a Pod its own.
func CheckKubeconfig(kubeconfig string) error {
	files := filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	if kubeconfig != "" {
		return nil
	}
	var missing error
	for _, file := range files {
		if file == "" {
			continue
		}
		_, err := os.Stat(file)
		if !errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if missing == nil {
			missing = fmt.Errorf("load kubeconfig: $KUBECONFIG: %w", err)
		}
	}
	return missing
}
