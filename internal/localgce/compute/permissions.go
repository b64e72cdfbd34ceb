package compute

import (
	"net/http"
	"strings"
)

// reading are the permissions that a request takes which only reads; of others the routes know it.
func reading(r *http.Request) []string {
	if r.Method != http.MethodGet {
		return nil
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/compute/v1/projects/"), "/")[1:]
	if len(parts) > 1 && parts[0] == "aggregated" {
		return permission(parts[1:], "")
	}
	if len(parts) > 2 && (parts[0] == "zones" || parts[0] == "regions") {
		return permission(parts[2:], strings.TrimSuffix(parts[0], "s"))
	}
	if len(parts) > 1 && parts[0] == "global" {
		return permission(parts[1:], "global")
	}
	if len(parts) == 0 {
		return []string{"compute.projects.get"}
	}
	return permission(parts, "")
}

// permission is that of a path which ends with a kind, or with a kind and a name. Some kinds have it by where they are.
func permission(parts []string, at string) []string {
	verb, kind := "list", parts[0]
	if len(parts) > 1 {
		verb = "get"
	}
	switch kind {
	case "operations", "healthChecks", "backendServices":
		kind = at + strings.ToUpper(kind[:1]) + kind[1:]
	case "images":
		if len(parts) > 2 {
			verb = "getFromFamily"
		}
	}
	return []string{"compute." + kind + "." + verb}
}
