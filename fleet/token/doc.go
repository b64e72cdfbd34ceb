// Package token lets workers join: it makes the bootstrap tokens by which a kubelet gets its first certificate, lists
// and deletes them.
//
//	New ──▶ Client.Create: the grants, then the token ──▶ Kubeconfig: a kubelet's --bootstrap-kubeconfig
//
// A token is Kubernetes' own: a Secret in kube-system that says who somebody is until it expires
// (https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/). What it may do follows kubeadm: ask for
// a kubelet's client certificate, which kube-controller-manager approves and signs, and nothing else. kubeadm's
// ConfigMap cluster-info, which anybody may read without a credential, is not made: no cluster of quorate's answers
// anonymous readers. Kubeconfig has the certificate authority instead.
//
// Guarantees: a token is 16 characters of the system's random source, and always expires. Nothing is granted before the
// first token is made. A worker that has joined keeps its own certificate, and renews it, when its token has gone.
package token
