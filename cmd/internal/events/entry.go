package events

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"waybill.dev/waybill/cmd/internal/output"
)

// Entry is an event of a cluster; -o json and yaml print it as it is.
type Entry struct {
	Cluster   string      `json:"cluster"`
	FirstSeen metav1.Time `json:"firstSeen"`
	LastSeen  metav1.Time `json:"lastSeen"`
	// Count is how often it was seen.
	Count int32 `json:"count"`
	// Type is Normal or Warning.
	Type   string `json:"type"`
	Reason string `json:"reason"`
	// Group, Kind, Namespace and Name of the object that it is about.
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Source is who reported it.
	Source  string `json:"source,omitempty"`
	Message string `json:"message"`
}

// newEntry reads an event of either API: core/v1, or events.k8s.io/v1, which leaves out other fields.
func newEntry(cluster string, event *corev1.Event) Entry {
	about := objectOf(event)
	if about.group == anyGroup {
		about.group = ""
	}
	e := Entry{
		Cluster: cluster, Type: event.Type, Reason: event.Reason, Message: strings.TrimSpace(event.Message),
		Group: about.group, Kind: about.kind, Namespace: about.namespace, Name: about.name,
		Source:    cmp.Or(event.Source.Component, event.ReportingController),
		FirstSeen: event.FirstTimestamp, LastSeen: event.LastTimestamp, Count: max(event.Count, 1),
	}
	if e.FirstSeen.IsZero() {
		e.FirstSeen = metav1.NewTime(event.EventTime.Time)
	}
	if e.FirstSeen.IsZero() {
		e.FirstSeen = event.CreationTimestamp
	}
	if series := event.Series; series != nil {
		e.LastSeen, e.Count = metav1.NewTime(series.LastObservedTime.Time), series.Count
	}
	if e.LastSeen.IsZero() {
		e.LastSeen = e.FirstSeen
	}
	return e
}

// seen says when it was seen, as kubectl does.
func (e Entry) seen(now time.Time) string {
	last := duration.HumanDuration(now.Sub(e.LastSeen.Time))
	if e.Count <= 1 {
		return last
	}
	return fmt.Sprintf("%s (x%d over %s)", last, e.Count, duration.HumanDuration(now.Sub(e.FirstSeen.Time)))
}

// sortEntries sorts by time, the latest last.
func sortEntries(entries []Entry) {
	slices.SortStableFunc(entries, func(a, b Entry) int {
		return cmp.Or(a.LastSeen.Compare(b.LastSeen.Time), cmp.Compare(a.Cluster, b.Cluster),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
}

// Columns say which columns a table of events has besides those that all have.
type Columns struct{ Cluster, Namespace, Wide bool }

// Table returns events as a table. What others wrote into them cannot steer a terminal.
func Table(entries []Entry, c Columns) *metav1.Table {
	names := []string{"Last Seen", "Type", "Reason", "Object"}
	if c.Wide {
		names = append(names, "Source")
	}
	if c.Namespace {
		names = append([]string{"Namespace"}, names...)
	}
	if c.Cluster {
		names = append([]string{"Cluster"}, names...)
	}
	table, now := output.NewTable(append(names, "Message")...), time.Now()
	for _, e := range entries {
		cells := map[string]string{
			"Cluster": e.Cluster, "Namespace": e.Namespace, "Last Seen": e.seen(now), "Type": e.Type, "Reason": e.Reason,
			"Object": e.Kind + "/" + e.Name, "Source": e.Source, "Message": e.Message,
		}
		row := make([]any, len(table.ColumnDefinitions))
		for i, column := range table.ColumnDefinitions {
			row[i] = output.Escape(cells[column.Name])
		}
		output.AddRow(table, row...)
	}
	return table
}
