package health

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A rule adds to kstatus what it does not know about one kind. If decided is false, kstatus
// decides.
type rule func(object map[string]any) (s Status, message string, decided bool)

var rules = map[schema.GroupKind]rule{
	{Group: "batch", Kind: "Job"}:                         job,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}: apiService,
	{Kind: "PersistentVolume"}:                            persistentVolume,
	{Kind: "Pod"}:                                         pod,
	{Group: "apps.waybill.dev", Kind: "Application"}:      application,
}

// application is healthy if its components are, or if nothing reports on them: the controller of
// Applications need not run. The result of its health-check Pod is for users.
func application(object map[string]any) (Status, string, bool) {
	c, found := condition(object, "ComponentsReady")
	if !found {
		return Current, "no controller reports on its components", true
	}
	generation, _, _ := unstructured.NestedInt64(object, "metadata", "generation")
	observed, _, _ := unstructured.NestedInt64(object, "status", "observedGeneration")
	switch {
	case generation != observed:
		return InProgress, "its components are being checked", true
	case c.status == "True":
		return Current, "its components are ready", true
	default:
		return InProgress, c.describe("its components are not ready"), true
	}
}

// job is healthy when it has completed. According to kstatus it is healthy from its start, which
// would make a release healthy while its migration is still running, or has not begun because the job
// is suspended.
func job(object map[string]any) (Status, string, bool) {
	if c, found := condition(object, "Complete"); found && c.status == "True" {
		return Current, "Job completed", true
	}
	if c, found := condition(object, "Failed"); found && c.status == "True" {
		return Failed, c.describe("Job failed"), true
	}
	if suspended, _, _ := unstructured.NestedBool(object, "spec", "suspend"); suspended {
		return InProgress, "Job is suspended: it runs when spec.suspend is false", true
	}
	return InProgress, "Job has not completed", true
}

// apiService is healthy if the server behind it answers.
func apiService(object map[string]any) (Status, string, bool) {
	c, found := condition(object, "Available")
	switch {
	case !found:
		return InProgress, "Availability is not known yet", true
	case c.status == "True":
		return Current, "API is available", true
	default:
		return InProgress, c.describe("API is not available"), true
	}
}

// persistentVolume fails if it could not be reclaimed.
func persistentVolume(object map[string]any) (Status, string, bool) {
	phase, _, _ := unstructured.NestedString(object, "status", "phase")
	switch phase {
	case "Failed":
		message, _, _ := unstructured.NestedString(object, "status", "message")
		return Failed, "PersistentVolume failed: " + message, true
	case "Available", "Bound", "Released":
		return Current, "PersistentVolume is " + phase, true
	default:
		return InProgress, "PersistentVolume is not available yet", true
	}
}

// cond is one entry of status.conditions.
type cond struct{ status, reason, message string }

// describe appends the reason and message of the condition to a headline.
func (c cond) describe(headline string) string {
	if c.message != "" {
		return fmt.Sprintf("%s: %s", headline, c.message)
	}
	if c.reason != "" {
		return fmt.Sprintf("%s: %s", headline, c.reason)
	}
	return headline
}

// condition finds a condition by its type. A malformed status has none.
func condition(object map[string]any, conditionType string) (cond, bool) {
	list, _, _ := unstructured.NestedSlice(object, "status", "conditions")
	for _, entry := range list {
		fields, _ := entry.(map[string]any)
		if fields["type"] != conditionType {
			continue
		}
		text := func(key string) string { s, _ := fields[key].(string); return s }
		return cond{status: text("status"), reason: text("reason"), message: text("message")}, true
	}
	return cond{}, false
}
