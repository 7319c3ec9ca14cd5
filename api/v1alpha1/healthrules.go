package v1alpha1

// HealthRulesConfigMap is the name of the ConfigMap in the system namespace in which an operator keeps
// rules, in keys that end in `.yaml`, by which waybill-sync determines the health of kinds.
const HealthRulesConfigMap = "waybill-health-rules"

// InvalidHealthRulesReason is the reason of an event on the ConfigMap with rules of health: some of them
// cannot be used. The others hold.
const InvalidHealthRulesReason = "InvalidHealthRules"
