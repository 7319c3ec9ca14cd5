package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"waybill.dev/waybill/test/observe"
	"waybill.dev/waybill/test/program"
)

// logLines is how many lines of each log a failure shows.
const logLines = 40

// diagnose shows which objects are not Ready and why, and the ends of the programs' logs.
func (s *stage) diagnose(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for _, p := range s.places() {
		s.say.printf("\n  Not Ready in %s:\n", p.Name())
		for _, plural := range []string{"gitsyncs", "kubernetesclusters", "applicationdefinitions", "applicationinstallations"} {
			s.showNotReady(ctx, p, plural)
		}
	}
	for _, r := range s.programs {
		log, err := r.process.Log()
		if err != nil {
			log = err.Error()
		}
		s.say.printf("\n  The end of the log of %s:\n", r.name)
		s.say.output(program.Tail(log, logLines))
	}
}

func (s *stage) showNotReady(ctx context.Context, p *place, plural string) {
	client, err := dynamic.NewForConfig(p.RESTConfig())
	if err != nil {
		s.say.output(err.Error())
		return
	}
	list, err := client.Resource(kind(plural).GroupVersionResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		s.say.output(err.Error())
		return
	}
	for i := range list.Items {
		if o := &list.Items[i]; !observe.Ready(o) {
			s.say.output(fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName()))
			s.showConditions(o)
		}
	}
}

func (s *stage) showConditions(o *observe.Object) {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions") // none is shown as none
	for _, item := range conditions {
		if c, ok := item.(map[string]any); ok {
			s.say.output(fmt.Sprintf("  %v=%v %v: %v", c["type"], c["status"], c["reason"], c["message"]))
		}
	}
	if len(conditions) == 0 {
		s.say.output("  no conditions")
	}
}
