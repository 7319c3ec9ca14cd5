package dashboard

import (
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// delivery is one object that delivers something: a GitSync or a KubernetesApplication.
type delivery struct {
	Namespace, Name, Link string
	Mark                  mark
	From, Revision, To    string
	Problems              int32
	Message               string
	Suspended             bool
}

func (s *server) syncs(w http.ResponseWriter, r *http.Request) {
	ctx, v := r.Context(), viewerOf(r)
	var syncs, placed []delivery
	for _, g := range visible[*v1alpha1.GitSync](ctx, v, s.inventory.syncs) {
		d := delivery{
			Namespace: g.Namespace, Name: g.Name, Link: objectLink("", "", "gitsyncs", g.Namespace, g.Name),
			From: g.Spec.URL, Revision: g.Status.Revision, Problems: g.Status.ProblemCount, Suspended: g.Spec.Suspend,
		}
		d.Mark, d.Message = verdict(g.Status.Conditions, d.Suspended)
		syncs = append(syncs, d)
	}
	for _, a := range visible[*v1alpha1.KubernetesApplication](ctx, v, s.inventory.placed) {
		d := delivery{
			Namespace: a.Namespace, Name: a.Name, Link: objectLink("", "", "kubernetesapplications", a.Namespace, a.Name), To: a.Spec.ClusterName,
		}
		d.Mark, d.Message = verdict(a.Status.Conditions, false)
		placed = append(placed, d)
	}
	s.show(w, r, "syncs", http.StatusOK, page{
		Title: "Deliveries", Area: "syncs", Kinds: []string{v1alpha1.GitSyncKind, v1alpha1.KubernetesApplicationKind},
		Model: map[string]any{"Syncs": syncs, "Placed": placed},
	})
}

// verdict returns what the condition Ready says.
func verdict(conditions []metav1.Condition, paused bool) (mark, string) {
	ready := meta.FindStatusCondition(conditions, v1alpha1.ReadyCondition)
	switch {
	case paused:
		return markPaused, ""
	case ready == nil:
		return markUnknown, "not reconciled yet"
	default:
		return markOf(ready.Status), ready.Message
	}
}

// hit is something that a search has found.
type hit struct{ Kind, Namespace, Name, Link, Where string }

// maxHits is how many results a search shows.
const maxHits = 200

func (s *server) search(w http.ResponseWriter, r *http.Request) {
	text := r.URL.Query().Get("q")
	hits := s.find(r.Context(), viewerOf(r), text)
	more := max(0, len(hits)-maxHits)
	s.show(w, r, "search", http.StatusOK, page{
		Title: "Search", Query: text,
		Kinds: []string{v1alpha1.KubernetesClusterKind, v1alpha1.ApplicationDefinitionKind, v1alpha1.GitSyncKind, v1alpha1.KubernetesApplicationKind},
		Model: map[string]any{"Hits": hits[:len(hits)-more], "More": more},
	})
}
