package token

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// Kubeconfig is the file that a kubelet takes as --bootstrap-kubeconfig. server is the URL by which workers reach the
// cluster, config that of the administrator, whose certificate authority it has.
func Kubeconfig(cluster, server string, config *rest.Config, t Token) ([]byte, error) {
	ca := config.CAData
	if len(ca) == 0 && config.CAFile != "" {
		var err error
		if ca, err = os.ReadFile(config.CAFile); err != nil {
			return nil, fmt.Errorf("read the certificate authority: %w", err)
		}
	}
	const user = "kubelet-bootstrap"
	context := user + "@" + cluster
	return yaml.Marshal(clientcmdapi.Config{APIVersion: "v1", Kind: "Config",
		Clusters: []clientcmdapi.NamedCluster{{Name: cluster,
			Cluster: clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}}},
		AuthInfos: []clientcmdapi.NamedAuthInfo{{Name: user, AuthInfo: clientcmdapi.AuthInfo{Token: t.String()}}},
		Contexts: []clientcmdapi.NamedContext{{Name: context,
			Context: clientcmdapi.Context{Cluster: cluster, AuthInfo: user}}},
		CurrentContext: context})
}
