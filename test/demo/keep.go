package main

import (
	"context"
	"os"
	"path/filepath"

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
	s.say.printf("\n%s\n", s.say.style(bold, "Everything stays up until Ctrl-C"))
	s.say.printf(`
  In another terminal:

    export KUBECONFIG=%s     # contexts hub (the current one), berlin, dublin
    export PATH=%s:%s:$PATH

    waybill get -A --all-clusters
    waybill tree gitsync/team-a -n %s
    kubectl --context berlin get applicationinstallations -A

  The repository's working copy is %s. Change something there, then:

    git commit -am 'My change' && git push
    waybill reconcile gitsync/team-a -n %s

  The kubeconfigs by themselves:

`, config, s.bin, filepath.Join(s.bin, "k8s"), system, s.repo.Dir(), system)
	for _, p := range []*place{s.hub, s.berlin, s.dublin} {
		s.say.printf("    %-8s %s\n", p.Name(), p.KubeconfigFile())
	}
}

// writeKubeconfig writes one kubeconfig with a context per cluster; it is removed with the hub.
func (s *stage) writeKubeconfig() (string, error) {
	merged := clientcmdapi.NewConfig()
	merged.CurrentContext = s.hub.Name()
	for _, p := range []*place{s.hub, s.berlin, s.dublin} {
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
