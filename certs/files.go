package certs

import "path/filepath"

// Authority names one of the four certificate authorities. They are four because with one for all etcd accepts the
// apiserver's client certificate on its peer port.
type Authority string

// The authorities.
const (
	Kubernetes Authority = "kubernetes"
	FrontProxy Authority = "front-proxy"
	EtcdPeer   Authority = "etcd-peer"
	EtcdClient Authority = "etcd-client"
)

// Leaf names one certificate of a replica; the table of them is Leaves.
type Leaf string

// The leaves of one replica.
const (
	EtcdServer               Leaf = "etcd-server"
	EtcdPeerLeaf             Leaf = "etcd-peer"
	APIServerEtcd            Leaf = "apiserver-etcd"
	AgentEtcd                Leaf = "agent-etcd"
	APIServer                Leaf = "apiserver"
	APIServerKubelet         Leaf = "apiserver-kubelet"
	FrontProxyClient         Leaf = "front-proxy-client"
	ControllerManager        Leaf = "controller-manager"
	Scheduler                Leaf = "scheduler"
	Autoscaler               Leaf = "autoscaler"
	Addons                   Leaf = "addons"
	Agent                    Leaf = "agent"
	Kubelet                  Leaf = "kubelet"
	KubeletServing           Leaf = "kubelet-serving"
	ControllerManagerServing Leaf = "controller-manager-serving"
	SchedulerServing         Leaf = "scheduler-serving"
)

// Files says where a replica keeps what certs makes. Dir is on the data disk, so that a restart needs neither the
// record nor KMS; Volatile is on a tmpfs and holds the one CA key that a process needs as a file, gone with the power.
type Files struct {
	Dir      string
	Volatile string
}

// Leaf is one PEM file with key, certificate and chain. One file, replaced by rename, so that no reader ever finds a
// key that does not fit its certificate.
func (f Files) Leaf(l Leaf) string { return filepath.Join(f.Dir, string(l)+".pem") }

// CA is the trust bundle of an authority: during a rotation it holds the old certificate and the new one.
func (f Files) CA(a Authority) string { return filepath.Join(f.Dir, string(a)+"-ca.crt") }

// CASigner is the newest certificate of the authority alone, as the controller-manager signs with it.
func (f Files) CASigner(a Authority) string {
	return filepath.Join(f.Volatile, string(a)+"-ca-signer.crt")
}

// CASignerKey is the authority's key, for the controller-manager, which signs kubelets' certificates.
func (f Files) CASignerKey(a Authority) string {
	return filepath.Join(f.Volatile, string(a)+"-ca-signer.key")
}

// ServiceAccountKey is the private key that signs service-account tokens.
func (f Files) ServiceAccountKey() string { return filepath.Join(f.Dir, "service-account.key") }

// ServiceAccountPublicKeys are all public keys that verify service-account tokens.
func (f Files) ServiceAccountPublicKeys() string { return filepath.Join(f.Dir, "service-account.pub") }

// EncryptionKeys are the keys that encrypt objects in etcd, from which the function EncryptionConfig makes what an
// apiserver reads. The file's name dates from when the apiserver read it directly.
func (f Files) EncryptionKeys() string { return filepath.Join(f.Dir, "encryption-config.yaml") }

// Kubeconfig is a leaf's kubeconfig. It names files, never data: client-go reads a renewed certificate only from files.
func (f Files) Kubeconfig(l Leaf) string { return filepath.Join(f.Dir, string(l)+".kubeconfig") }
