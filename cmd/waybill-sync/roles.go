package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The names of the controllers in --controllers.
const (
	gitSync                 = "gitsync"
	kubernetesCluster       = "kubernetescluster"
	applicationDefinition   = "applicationdefinition"
	sourceCredential        = "sourcecredential"
	valuesSchema            = "valuesschema"
	applicationInstallation = "applicationinstallation"
	applications            = "application"
	executionHook           = "executionhook"
	applicationSnapshot     = "applicationsnapshot"
	statefulApplication     = "statefulapplication"
	applicationRollback     = "applicationrollback"

	kubernetesApplication         = "kubernetesapplication"
	kubernetesApplicationResource = "kubernetesapplicationresource"
)

// roleAll runs every controller, for use in one cluster.
const roleAll = "all"

// roles are the sets of controllers that a process can run; each has its own ServiceAccount.
var roles = map[string][]string{
	"hub":    {gitSync, applicationDefinition, sourceCredential, valuesSchema},
	"driver": {kubernetesCluster, applicationInstallation, kubernetesApplication, kubernetesApplicationResource},
	"agent":  {applications},
	"data":   {executionHook, applicationSnapshot, statefulApplication, applicationRollback},
	roleAll: {
		gitSync, kubernetesCluster, applicationDefinition, sourceCredential, valuesSchema, applicationInstallation,
		kubernetesApplication, kubernetesApplicationResource, applications, executionHook,
		applicationSnapshot, statefulApplication, applicationRollback,
	},
}

// known returns the list of names that --controllers accepts.
func known() string {
	names := append(slices.Sorted(maps.Keys(roles)), roles[roleAll]...)
	return strings.Join(names, ", ")
}

// onlyLocal reports whether only controllers of the roles agent and data are selected: they know no
// cluster but their own, no sources and no credentials.
func onlyLocal(selected map[string]bool) bool {
	for name := range selected {
		if !slices.Contains(roles["agent"], name) && !slices.Contains(roles["data"], name) {
			return false
		}
	}
	return true
}

// onlyDriver reports whether only controllers of the role driver are selected: they need nothing of the hub
// but one namespace, the catalog and the hub's id.
func onlyDriver(selected map[string]bool) bool {
	for name := range selected {
		if !slices.Contains(roles["driver"], name) {
			return false
		}
	}
	return true
}

// selectControllers returns the set of controllers to run for the given names of controllers and
// roles.
func selectControllers(names []string) (map[string]bool, error) {
	selected := map[string]bool{}
	for _, name := range names {
		members, isRole := roles[name]
		if !isRole {
			members = []string{name}
		}
		for _, member := range members {
			if !slices.Contains(roles[roleAll], member) {
				return nil, fmt.Errorf("--controllers: %q is unknown, use %s", member, known())
			}
			selected[member] = true
		}
	}
	if len(selected) == 0 {
		return nil, fmt.Errorf("--controllers: name at least one of %s", known())
	}
	return selected, nil
}
