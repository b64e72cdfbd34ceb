package token

import (
	"context"
	"encoding/json"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// group is the one that kubeadm gives its tokens.
const group = "system:bootstrappers:kubeadm:default-node-token"

// bindings are kubeadm's, by its names (cmd/kubeadm/app/phases/bootstraptoken/node/tlsbootstrap.go): a token may ask
// for a certificate, it is approved where it is a kubelet's first, and where a kubelet renews its own. The roles are
// Kubernetes' own.
var bindings = []struct{ name, role, group string }{
	{"kubeadm:kubelet-bootstrap", "system:node-bootstrapper", group},
	{"kubeadm:node-autoapprove-bootstrap", "system:certificates.k8s.io:certificatesigningrequests:nodeclient", group},
	{"kubeadm:node-autoapprove-certificate-rotation",
		"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", "system:nodes"},
}

// grant applies the bindings. It can be repeated.
func (c *Client) grant(ctx context.Context) error {
	for _, b := range bindings {
		text, err := json.Marshal(rbacv1.ClusterRoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: b.name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: b.role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: b.group}},
		})
		if err != nil {
			return err
		}
		force := true
		if _, err := c.rbac.ClusterRoleBindings().Patch(ctx, b.name, types.ApplyPatchType, text,
			metav1.PatchOptions{FieldManager: "quorate", Force: &force}); err != nil {
			return fmt.Errorf("grant role %s to %s: %w", b.role, b.group, err)
		}
	}
	return nil
}
