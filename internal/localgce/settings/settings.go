// Package settings is what a project is set up with besides its VMs: policies, roles, keys, firewall rules, what a
// bucket says of itself. It serves the paths of Cloud KMS, Resource Manager and IAM.
package settings

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/localgce/answer"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// Settings are what a project is set up with besides its VMs, in the JSON form of Google's APIs. It is what people get
// wrong, and what `quorate gce check` reads. The policies and roles of project and bucket are in force for VMs. It must
// not be changed while it is served.
type Settings struct {
	// Bucket are the fields of a bucket (storage/v1), Project those of the project (compute/v1).
	Bucket, Project map[string]any
	// Key are the fields of each key of Cloud KMS.
	Key map[string]any
	// The policies of bucket, key, key ring and project.
	BucketPolicy, KeyPolicy, RingPolicy, ProjectPolicy []Binding
	// Roles are the permissions of each role.
	Roles map[string][]string
	// Firewalls, Subnetworks, Routers and Addresses are resources of compute/v1.
	Firewalls, Subnetworks, Routers, Addresses []map[string]any
	// Zones are those of the project where nobody else says it; nil: those that have VMs.
	Zones []string
	// Accounts are the emails of the service accounts that there are.
	Accounts []string
	// Lacking are permissions that the caller does not have, whoever that is. Only who asks for permissions hears it.
	Lacking []string
	// Disabled are APIs that are off, such as cloudkms.googleapis.com.
	Disabled []string
}

// Binding is a binding of an IAM policy.
type Binding struct {
	Role    string   `json:"role"`
	Members []string `json:"members"`
	// Condition is nil where it always counts.
	Condition *Condition `json:"condition,omitempty"`
}

// Condition is under which a binding counts.
type Condition struct {
	Title      string `json:"title"`
	Expression string `json:"expression"`
}

// Whole are those of a project that lacks nothing, for a cluster in BucketName.
func Whole(cluster string) *Settings {
	me := []string{"serviceAccount:" + instance.MastersAccount()}
	role := func(name string) string { return "projects/" + instance.ProjectID + "/roles/" + name }
	below := func(folders ...string) *Condition {
		var terms []string
		for _, f := range folders {
			terms = append(terms, fmt.Sprintf(`resource.name.startsWith("projects/_/buckets/%s/objects/%s")`,
				instance.BucketName, f))
		}
		return &Condition{Title: "replaced", Expression: strings.Join(terms, " || ")}
	}
	network := "https://www.googleapis.com/compute/v1/projects/" + instance.ProjectID + "/global/networks/default"
	rule := func(name string, ranges []string, ports ...string) map[string]any {
		return map[string]any{"kind": "compute#firewall", "name": name, "network": network, "direction": "INGRESS",
			"priority": 1000, "sourceRanges": ranges, "disabled": false,
			"allowed": []any{map[string]any{"IPProtocol": "tcp", "ports": ports}}}
	}
	return &Settings{
		Accounts: []string{instance.MastersAccount()},
		Bucket: map[string]any{"location": "US-CENTRAL1", "locationType": "region", "storageClass": "STANDARD",
			"versioning": map[string]any{"enabled": true},
			"iamConfiguration": map[string]any{"publicAccessPrevention": "enforced",
				"uniformBucketLevelAccess": map[string]any{"enabled": true}},
			"lifecycle": map[string]any{"rule": []any{map[string]any{"action": map[string]any{"type": "Delete"},
				"condition": map[string]any{"isLive": false, "daysSinceNoncurrentTime": 7}}}}},
		Project: map[string]any{"commonInstanceMetadata": map[string]any{"kind": "compute#metadata"}},
		Key:     map[string]any{"purpose": "ENCRYPT_DECRYPT", "primary": map[string]any{"state": "ENABLED"}},
		BucketPolicy: []Binding{{Role: role("quorateRecord"), Members: me},
			{Role: role("quorateRecordDelete"), Members: me, Condition: below(cluster+"/marks/",
				cluster+"/snapshots/")},
			{Role: role("quorateRecordDelete"), Members: me, Condition: below(cluster + ".reports/")}},
		KeyPolicy: []Binding{{Role: "roles/cloudkms.cryptoKeyEncrypterDecrypter", Members: me}},
		ProjectPolicy: []Binding{{Role: role("quorateCompute"), Members: me},
			{Role: role("quorateEndpoint"), Members: me}},
		Roles: map[string][]string{
			role("quorateRecord"):       {"storage.objects.list", "storage.objects.get", "storage.objects.create"},
			role("quorateRecordDelete"): {"storage.objects.delete"},
			role("quorateCompute"): {"compute.instances.list", "compute.instances.get", "compute.disks.list",
				"compute.disks.get"},
			role("quorateEndpoint"): {"compute.networkEndpointGroups.get",
				"compute.networkEndpointGroups.attachNetworkEndpoints",
				"compute.networkEndpointGroups.detachNetworkEndpoints", "compute.instances.use",
				"compute.zoneOperations.get"},
			"roles/cloudkms.cryptoKeyEncrypterDecrypter": {"cloudkms.cryptoKeyVersions.useToDecrypt",
				"cloudkms.cryptoKeyVersions.useToEncrypt"},
			"roles/storage.objectUser": {"storage.objects.create", "storage.objects.delete", "storage.objects.get",
				"storage.objects.list", "storage.objects.update"},
		},
		Firewalls: []map[string]any{
			rule("masters", []string{"10.0.0.0/8"}, "2379-2380"),
			rule("api", []string{"10.0.0.0/8", "35.191.0.0/16", "209.85.152.0/22", "209.85.204.0/22", "130.211.0.0/22"},
				"443"),
		},
		Subnetworks: []map[string]any{{"kind": "compute#subnetwork", "name": "default", "network": network,
			"ipCidrRange": "10.128.0.0/20", "privateIpGoogleAccess": true}},
	}
}

// Local are a project's own: its bucket keeps no older versions, and the endpoint, where it is given, is reserved.
func Local(cluster, endpoint string) *Settings {
	s := Whole(cluster)
	if endpoint != "" {
		s.Addresses = []map[string]any{{"name": "endpoint", "address": endpoint, "addressType": "EXTERNAL",
			"networkTier": "PREMIUM", "status": "RESERVED"}}
	}
	delete(s.Bucket, "versioning")
	delete(s.Bucket, "lifecycle")
	return s
}

// server answers what concerns keys, policies, roles and the project: the paths of Cloud KMS, Resource Manager and IAM
// do not meet.
type server struct{ settings *Settings }

// ServeHTTP implements http.Handler.
func (s server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, verb, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/"), ":")
	isKey := strings.Contains(path, "/cryptoKeys/")
	isProject := path == "projects/"+instance.ProjectID || path == "projects/"+answer.Decimal(instance.ProjectNumber)
	api := "iam.googleapis.com"
	if strings.Contains(path, "/keyRings/") {
		api = "cloudkms.googleapis.com"
	} else if isProject {
		api = "cloudresourcemanager.googleapis.com"
	}
	role, known := s.settings.Roles[path]
	_, account, isAccount := strings.Cut(path, "/serviceAccounts/")
	isAccount = isAccount && slices.Contains(s.settings.Accounts, account)
	switch {
	case s.settings.Refuses(w, api):
	case verb == "getIamPolicy" && isKey:
		answerPolicy(w, s.settings.KeyPolicy)
	case verb == "getIamPolicy" && strings.Contains(path, "/keyRings/"):
		answerPolicy(w, s.settings.RingPolicy)
	case verb == "testIamPermissions" && (isProject || isAccount):
		s.settings.answerPermissions(w, r)
	case verb == "" && isAccount:
		answer.JSON(w, map[string]any{"name": path, "email": account})
	case verb == "getIamPolicy" && isProject:
		answerPolicy(w, s.settings.ProjectPolicy)
	case verb == "" && isProject:
		answer.JSON(w, map[string]any{"projectId": instance.ProjectID, "lifecycleState": "ACTIVE",
			"projectNumber": answer.Decimal(instance.ProjectNumber), "name": instance.ProjectID})
	case verb == "" && isKey && s.settings.Key != nil:
		answer.JSON(w, s.settings.key(path))
	case verb == "" && known:
		answer.JSON(w, map[string]any{"name": path, "includedPermissions": role, "stage": "GA"})
	default:
		answer.Error(w, http.StatusNotFound, "notFound", path+" was not found")
	}
}

// key completes the fields that name the key and its primary version.
func (s *Settings) key(path string) map[string]any {
	out := answer.With(map[string]any{"name": path}, s.Key)
	if primary, ok := s.Key["primary"].(map[string]any); ok {
		out["primary"] = answer.With(map[string]any{"name": path + "/cryptoKeyVersions/1"}, primary)
	}
	return out
}

func answerPolicy(w http.ResponseWriter, bindings []Binding) {
	answer.JSON(w, map[string]any{"version": 3, "etag": "BwYAAAAAAAA=", "bindings": bindings})
}

// answerPermissions answers which of the permissions that are asked for the caller has.
func (s *Settings) answerPermissions(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Permissions []string `json:"permissions"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		answer.Error(w, http.StatusBadRequest, "badRequest", err.Error())
		return
	}
	answer.JSON(w, map[string]any{"permissions": s.Held(asked.Permissions)})
}

// Held are those of some permissions that the caller has.
func (s *Settings) Held(asked []string) []string {
	return slices.DeleteFunc(slices.Clone(asked), func(p string) bool { return slices.Contains(s.Lacking, p) })
}

// Refuses answers in place of an API that is off, as Google does.
func (s *Settings) Refuses(w http.ResponseWriter, api string) bool {
	if !slices.Contains(s.Disabled, api) {
		return false
	}
	answer.Error(w, http.StatusForbidden, "accessNotConfigured", api+" has not been used in project "+instance.ProjectID+
		" before or it is disabled.")
	return true
}

// Listed are the lists of compute/v1 that are settings, and what one item is called.
func (s *Settings) Listed(kind string) (list []map[string]any, item string) {
	switch kind {
	case "firewalls":
		return s.Firewalls, "firewall"
	case "subnetworks":
		return s.Subnetworks, "subnetwork"
	case "routers":
		return s.Routers, "router"
	case "addresses":
		return s.Addresses, "address"
	}
	return nil, ""
}

// APIs serves all of Google's APIs of a project that are not its VMs' metadata, as one handler: their paths do not
// meet.
type APIs struct {
	compute, storage, rest http.Handler
	settings               *Settings
}

// NewAPIs serves them: compute and storage as they are given, keys, policies and roles by the settings.
func NewAPIs(compute, storage http.Handler, settings *Settings) *APIs {
	return &APIs{compute, storage, server{settings}, settings}
}

// ServeHTTP implements http.Handler.
func (a *APIs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, "/compute/"):
		if !a.settings.Refuses(w, "compute.googleapis.com") {
			a.compute.ServeHTTP(w, r)
		}
	case strings.HasPrefix(r.URL.Path, "/v1/"):
		a.rest.ServeHTTP(w, r)
	default:
		a.storage.ServeHTTP(w, r)
	}
}
