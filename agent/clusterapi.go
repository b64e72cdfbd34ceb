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
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	rbac "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/quorate/quorate/certs"
)

// leaseNamespace is where the control plane's own elections are.
const leaseNamespace = "kube-system"

// agentName is the user that the agent is in the cluster, its role and its binding.
const agentName = "quorate:agent"

// agentRole is what the agent may do in the cluster: read and release the leases of the control plane, and see that
// these roles and the add-on manager's are granted. They are granted with a certificate that exists in memory for a
// minute, so that no file on the disk is an administrator's.
const agentRole = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"quorate:agent"},
"rules":[{"apiGroups":["coordination.k8s.io"],"resources":["leases"],"verbs":["get","list","watch","create","update"]},
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
func localAPI(files certs.Files, port int) *rest.Config {
	return &rest.Config{
		Host:    "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		Timeout: callTimeout,
		TLSClientConfig: rest.TLSClientConfig{
			CAFile: files.CA(certs.Kubernetes), CertFile: files.Leaf(certs.Agent), KeyFile: files.Leaf(certs.Agent),
		},
	}
}

// rolesGranted reports whether the roles are there as they have to be, by the agent's own eyes: who is refused lacks
// them.
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
	if err != nil || !equality.Semantic.DeepEqual(found.Rules, role.Rules) {
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

// leases are the control plane's own, for the status.
type leases struct {
	client coordination.LeaseInterface
}

func newLeases(files certs.Files, port int) (*leases, error) {
	client, err := coordination.NewForConfig(localAPI(files, port))
	if err != nil {
		return nil, fmt.Errorf("open leases: %w", err)
	}
	return &leases{client: client.Leases(leaseNamespace)}, nil
}

// list reads the leases of the components; the apiservers' own identity leases are left out.
func (l *leases) list(ctx context.Context) ([]LeaseStatus, error) {
	all, err := l.client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	out := []LeaseStatus{}
	for _, item := range all.Items {
		if strings.HasPrefix(item.Name, "apiserver-") {
			continue
		}
		s := LeaseStatus{Name: item.Name}
		if item.Spec.HolderIdentity != nil {
			s.Holder = *item.Spec.HolderIdentity
		}
		if item.Spec.RenewTime != nil {
			s.Renewed = item.Spec.RenewTime.Time
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b LeaseStatus) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// release frees a lease whose holder on this machine has certainly exited, so that another replica need not wait until
// it runs out. A lease renewed after the exit belongs to somebody else by then and is left alone; so is one that
// changes between the read and the write.
func (l *leases) release(ctx context.Context, name, hostname string, exited time.Time) (bool, error) {
	lease, err := l.client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("release lease %s: %w", name, err)
	}
	spec := &lease.Spec
	mine := spec.HolderIdentity != nil && (*spec.HolderIdentity == hostname ||
		strings.HasPrefix(*spec.HolderIdentity, hostname+"_"))
	if !mine || spec.RenewTime == nil || spec.RenewTime.After(exited) {
		return false, nil
	}
	nobody, second := "", int32(1)
	spec.HolderIdentity, spec.LeaseDurationSeconds = &nobody, &second
	_, err = l.client.Update(ctx, lease, metav1.UpdateOptions{FieldManager: "quorate"})
	if apierrors.IsConflict(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("release lease %s: %w", name, err)
	}
	return true, nil
}
