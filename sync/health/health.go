package health

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
)

// Status is the health of one object, in the terms of kstatus.
type Status string

const (
	// Current: the object is as its spec wants it.
	Current Status = "Current"
	// InProgress: its controller is still at work, or has not begun.
	InProgress Status = "InProgress"
	// Failed: its controller gave up, or cannot go on.
	Failed Status = "Failed"
	// Terminating: the object is being deleted.
	Terminating Status = "Terminating"
	// NotFound: there is no such object.
	NotFound Status = "NotFound"
	// Unknown: the object could not be read, or makes no sense.
	Unknown Status = "Unknown"
)

// severity orders statuses for reports: the worst has the highest.
var severity = map[Status]int{
	Current: 0, InProgress: 1, Terminating: 2, Unknown: 3, NotFound: 4, Failed: 5,
}

// Of computes the health of a live object from its metadata, spec and status, and returns the
// reason. A nil object is NotFound. The message depends only on the object and never on the time,
// so the same object gives the same message. The rules of kinds (Book) win over what kstatus says.
func Of(object *unstructured.Unstructured) (Status, string) {
	if object == nil {
		return NotFound, "does not exist"
	}
	if rule := InUse().find(object.GroupVersionKind().GroupKind()); rule != nil {
		return rule.of(object)
	}
	if rule, found := rules[object.GroupVersionKind().GroupKind()]; found && object.GetDeletionTimestamp() == nil {
		if s, message, decided := rule(object.Object); decided {
			return s, message
		}
	}
	result, err := status.Compute(object)
	if err != nil {
		return Unknown, err.Error()
	}
	return Status(result.Status), result.Message
}

// OfMetadata is Of for kinds for which HasStatus is false: an object that exists and is not being
// deleted is Current.
func OfMetadata(deleting bool) (Status, string) {
	if deleting {
		return Terminating, "is being deleted"
	}
	return Current, ""
}

// HasStatus reports whether the health of a kind depends on more than its metadata. If it is false,
// an object that exists is healthy, and it is enough to watch metadata. It is false for kinds
// without a status, for those whose status does not express health, and for Secrets, which are
// never read in full. Unknown kinds, and therefore all that a CustomResourceDefinition
// defines, have a status.
func HasStatus(kind schema.GroupKind) bool {
	return !withoutStatus[kind]
}

// ReportsStatus reports whether objects of a kind have a field status, whether or not it expresses
// health. Unknown kinds may have one.
func ReportsStatus(kind schema.GroupKind) bool {
	return HasStatus(kind) || statusWithoutHealth[kind]
}

// statusWithoutHealth lists those of withoutStatus that have a status nevertheless.
var statusWithoutHealth = kindSet(map[string][]string{
	"":                             {"Namespace", "ResourceQuota", "Service"},
	"admissionregistration.k8s.io": {"ValidatingAdmissionPolicy"},
	"autoscaling":                  {"HorizontalPodAutoscaler"},
	"batch":                        {"CronJob"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"networking.k8s.io":            {"Ingress", "ServiceCIDR"},
})

// withoutStatus lists the built-in kinds whose objects are healthy if they exist.
var withoutStatus = kindSet(map[string][]string{
	"": {
		"ConfigMap", "Endpoints", "Event", "LimitRange", "Namespace", "PodTemplate", "ResourceQuota", "Secret",
		"Service", "ServiceAccount",
	},
	"admissionregistration.k8s.io": {
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	},
	"apps":                         {"ControllerRevision"},
	"autoscaling":                  {"HorizontalPodAutoscaler"},
	"batch":                        {"CronJob"},
	"coordination.k8s.io":          {"Lease"},
	"discovery.k8s.io":             {"EndpointSlice"},
	"events.k8s.io":                {"Event"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"networking.k8s.io":            {"Ingress", "IngressClass", "IPAddress", "NetworkPolicy", "ServiceCIDR"},
	"node.k8s.io":                  {"RuntimeClass"},
	"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"storage.k8s.io":               {"CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttributesClass"},
})

func kindSet(kinds map[string][]string) map[schema.GroupKind]bool {
	set := make(map[schema.GroupKind]bool)
	for group, names := range kinds {
		for _, name := range names {
			set[schema.GroupKind{Group: group, Kind: name}] = true
		}
	}
	return set
}
