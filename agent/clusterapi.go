package agent

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	rbac "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/quorate/quorate/certs"
)

// agentName is the user that the agent is in the cluster, its role and its binding.
const agentName = "quorate:agent"

// agentRole is what the agent may do in the cluster: hold its own lease, read and release those of the control plane,
// delete the Nodes of replicas that have left, make events of its own, and see that these roles and the add-on
// manager's are granted. They are granted with a certificate that exists in memory for a minute, so that no file on the
// disk is an administrator's.
const agentRole = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"quorate:agent"},
"rules":[{"apiGroups":["coordination.k8s.io"],"resources":["leases"],"verbs":["get","list","watch","create","update"]},
{"apiGroups":[""],"resources":["nodes"],"verbs":["get","delete"]},
{"apiGroups":[""],"resources":["events"],"verbs":["create"]},
{"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles","clusterrolebindings"],
"resourceNames":["quorate:agent","quorate:apiserver-kubelet","quorate:addons"],"verbs":["get"]},
{"nonResourceURLs":["/healthz","/livez","/readyz","/livez/*","/readyz/*"],"verbs":["get"]}]}`

// roleBindings are by name. The second lets the apiserver's client certificate into the kubelets (logs, exec): upstream
// has the role, not the binding.
var roleBindings = map[string]string{
	agentName: `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"quorate:agent"},
"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"quorate:agent"},
"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"quorate:agent"}]}`,
	"quorate:apiserver-kubelet": `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"quorate:apiserver-kubelet"},
"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"system:kubelet-api-admin"},
"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"kube-apiserver-kubelet-client"}]}`,
}

// localAPI is the apiserver of this replica, always by loopback: never the load balancer, which would answer with
// itself.
func localAPI(files certs.Files, port int) *rest.Config { return localAPIAs(certs.Agent, files, port) }

// localAPIAs is the same to one who shows that leaf.
func localAPIAs(leaf certs.Leaf, files certs.Files, port int) *rest.Config {
	return &rest.Config{
		Host:    "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		Timeout: callTimeout,
		TLSClientConfig: rest.TLSClientConfig{
			CAFile: files.CA(certs.Kubernetes), CertFile: files.Leaf(leaf), KeyFile: files.Leaf(leaf),
		},
	}
}

// rolesGranted reports whether the roles are there, by the agent's own eyes: who is refused lacks them. A role of
// another version that allows more is left alone, so that replicas of two versions do not undo each other's.
func rolesGranted(ctx context.Context, files certs.Files, port int) (bool, error) {
	client, err := rbac.NewForConfig(localAPI(files, port))
	same := false
	if err == nil {
		same, err = sameRoles(ctx, client)
	}
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("read the agent's role: %w", err)
	}
	return same, nil
}

func sameRoles(ctx context.Context, client rbac.RbacV1Interface) (bool, error) {
	var role rbacv1.ClusterRole
	if err := json.Unmarshal([]byte(agentRole), &role); err != nil {
		return false, err
	}
	found, err := client.ClusterRoles().Get(ctx, agentName, metav1.GetOptions{})
	if err != nil || !hasAll(found.Rules, role.Rules) {
		return false, err
	}
	for name, text := range roleBindings {
		var binding rbacv1.ClusterRoleBinding
		if err := json.Unmarshal([]byte(text), &binding); err != nil {
			return false, err
		}
		found, err := client.ClusterRoleBindings().Get(ctx, name, metav1.GetOptions{})
		if err != nil || found.RoleRef != binding.RoleRef || !equality.Semantic.DeepEqual(found.Subjects,
			binding.Subjects) {
			return false, err
		}
	}
	return true, nil
}

func hasAll(rules, wanted []rbacv1.PolicyRule) bool {
	for _, w := range wanted {
		same := func(r rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(r, w) }
		if !slices.ContainsFunc(rules, same) {
			return false
		}
	}
	return true
}

// bootstrapAPI is the apiserver of this replica to one who shows a bootstrap certificate.
func bootstrapAPI(files certs.Files, port int, bootstrap tls.Certificate) (*rbac.RbacV1Client, error) {
	tlsConfig, err := certs.APIServerTLS(files)
	if err != nil {
		return nil, err
	}
	tlsConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &bootstrap, nil
	}
	transport := &http.Transport{TLSClientConfig: tlsConfig, DisableKeepAlives: true}
	config := &rest.Config{Host: localAPI(files, port).Host,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	return rbac.NewForConfigAndClient(config, &http.Client{Transport: transport, Timeout: callTimeout})
}

// grantRoles applies the roles with a bootstrap certificate.
func grantRoles(ctx context.Context, files certs.Files, port int, bootstrap tls.Certificate) error {
	client, err := bootstrapAPI(files, port, bootstrap)
	if err != nil {
		return fmt.Errorf("grant the agent its role: %w", err)
	}
	force := true
	opts := metav1.PatchOptions{FieldManager: "quorate", Force: &force}
	if _, err := client.ClusterRoles().Patch(ctx, agentName, types.ApplyPatchType, []byte(agentRole),
		opts); err != nil {
		return fmt.Errorf("grant the agent its role: %w", err)
	}
	for name, binding := range roleBindings {
		if _, err := client.ClusterRoleBindings().Patch(ctx, name, types.ApplyPatchType, []byte(binding),
			opts); err != nil {
			return fmt.Errorf("grant the role of %s: %w", name, err)
		}
	}
	return nil
}
