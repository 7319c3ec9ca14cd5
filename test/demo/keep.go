package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// explain prints how to continue by hand. It configures an author for commits, which not every
// machine has.
func (s *stage) explain(ctx context.Context) {
	for _, setting := range [][]string{{"user.name", "You"}, {"user.email", "you@example.com"}} {
		if _, err := s.repo.Git(ctx, "config", setting[0], setting[1]); err != nil {
			s.say.printf("\n%v\n", err)
		}
	}
	config, err := s.writeKubeconfig()
	if err != nil {
		s.say.printf("\n%v\n", err)
		return
	}
	address, err := s.dashboard(ctx, config)
	if err != nil {
		s.say.printf("\n%v\n", err)
		address = "not there: see above"
	}
	s.say.printf("\n%s\n", s.say.style(bold, "Everything stays up until Ctrl-C"))
	s.say.printf(`
  The dashboard, in a browser. The address lets in one browser, once:

    %s

  In another terminal:

    export KUBECONFIG=%s     # contexts %s
    export PATH=%s:%s:$PATH

    waybill get -A --all-clusters
    waybill dashboard                 # for another browser
    waybill --context %s tree gitsync/team-a -n %s
    kubectl --context berlin get applicationinstallations -A

  The repository's working copy is %s. Change something there, then:

    git commit -am 'My change' && git push
    waybill --context %s reconcile gitsync/team-a -n %s

  The kubeconfigs by themselves:

`, address, config, s.contexts(), s.bin, filepath.Join(s.bin, "k8s"), s.home().Name(), system, s.repo.Dir(), s.home().Name(), system)
	for _, p := range s.places() {
		s.say.printf("    %-8s %s\n", p.Name(), p.KubeconfigFile())
	}
}

// contexts names the clusters.
func (s *stage) contexts() string {
	var names []string
	for _, p := range s.places() {
		names = append(names, p.Name())
	}
	return strings.Join(names, ", ")
}

// writeKubeconfig writes one kubeconfig with a context per cluster; it is removed with the hub.
func (s *stage) writeKubeconfig() (string, error) {
	merged := clientcmdapi.NewConfig()
	merged.CurrentContext = s.hub.Name()
	for _, p := range s.places() {
		one, err := clientcmd.Load(p.Kubeconfig())
		if err != nil {
			return "", err
		}
		name := p.Name()
		merged.Clusters[name], merged.AuthInfos[name], merged.Contexts[name] = one.Clusters[name], one.AuthInfos[name], one.Contexts[name]
	}
	content, err := clientcmd.Write(*merged)
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(s.hub.KubeconfigFile()), "demo.kubeconfig")
	return path, os.WriteFile(path, content, 0o600)
}
