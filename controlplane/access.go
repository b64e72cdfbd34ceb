package controlplane

import (
	"fmt"
	"path/filepath"
	"slices"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/internal/replica"
)

// accessAPI heads both of the apiserver's documents about access.
const accessAPI = "apiserver.config.k8s.io/v1"

// The apiserver's AuthorizationConfiguration, as much of it as is used here.
type (
	authorizationDocument struct {
		APIVersion  string       `json:"apiVersion"`
		Kind        string       `json:"kind"`
		Authorizers []authorizer `json:"authorizers"`
	}
	authorizer struct {
		Type    string                `json:"type"`
		Name    string                `json:"name"`
		Webhook *authorizationWebhook `json:"webhook,omitempty"`
	}
	authorizationWebhook struct {
		AuthorizedTTL              replica.Duration         `json:"authorizedTTL"`
		UnauthorizedTTL            replica.Duration         `json:"unauthorizedTTL"`
		Timeout                    replica.Duration         `json:"timeout"`
		SubjectAccessReviewVersion string                   `json:"subjectAccessReviewVersion"`
		MatchConditionVersion      string                   `json:"matchConditionSubjectAccessReviewVersion"`
		FailurePolicy              string                   `json:"failurePolicy"`
		ConnectionInfo             connectionInfo           `json:"connectionInfo"`
		MatchConditions            []replica.MatchCondition `json:"matchConditions,omitempty"`
	}
	connectionInfo struct {
		Type           string `json:"type"`
		KubeConfigFile string `json:"kubeConfigFile"`
	}
)

// accessFiles say who is let in, and who may do what.
func (in Input) accessFiles() ([]File, error) {
	authentication, err := in.authenticationConfig()
	if err != nil {
		return nil, err
	}
	authorization, err := in.authorizationConfig()
	return append([]File{authentication}, authorization...), err
}

// authenticationConfig lets in the issuers of the configuration and the anonymous reader of health. The
// apiserver knows the issuers' types by their own names, so they are written as they are.
func (in Input) authenticationConfig() (File, error) {
	data := authentication
	if len(in.Cluster.JWT) > 0 {
		issuers, err := yaml.Marshal(map[string]any{"jwt": in.Cluster.JWT})
		if err != nil {
			return File{}, fmt.Errorf("encode the authentication configuration: %w", err)
		}
		data = append(data[:len(data):len(data)], issuers...)
	}
	return File{Path: in.authenticationFile(), Data: data}, nil
}

// authorizationConfig has Node and RBAC first, as kube-up had them: whatever a webhook says, or does not say, what the
// masters' own processes and the kubelets need is allowed before it is asked.
func (in Input) authorizationConfig() ([]File, error) {
	document := authorizationDocument{APIVersion: accessAPI, Kind: "AuthorizationConfiguration",
		Authorizers: []authorizer{{Type: "Node", Name: "node"}, {Type: "RBAC", Name: "rbac"}}}
	var files []File
	for _, w := range in.Cluster.Authorization.Webhooks {
		kubeconfig, err := in.webhookKubeconfig(w)
		if err != nil {
			return nil, err
		}
		files = append(files, kubeconfig)
		webhook := &authorizationWebhook{
			AuthorizedTTL:              w.AuthorizedTTL,
			UnauthorizedTTL:            w.UnauthorizedTTL,
			Timeout:                    w.Timeout,
			SubjectAccessReviewVersion: w.SubjectAccessReviewVersion,
			MatchConditionVersion:      "v1",
			FailurePolicy:              w.FailurePolicy,
			ConnectionInfo:             connectionInfo{Type: "KubeConfigFile", KubeConfigFile: kubeconfig.Path},
			MatchConditions:            w.MatchConditions,
		}
		document.Authorizers = append(document.Authorizers, authorizer{Type: "Webhook", Name: w.Name, Webhook: webhook})
	}
	data, err := yaml.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("encode the authorization configuration: %w", err)
	}
	// It comes last: the apiserver reads it again when it changes, and then the kubeconfigs that it names.
	return append(files, File{Path: in.authorizationFile(), Data: data}), nil
}

// webhookKubeconfig is how the apiserver reaches a webhook. What it shows there is in files of the replica's.
func (in Input) webhookKubeconfig(w replica.Webhook) (File, error) {
	server := clientcmdapi.Cluster{Server: w.Server, CertificateAuthorityData: []byte(w.CertificateAuthority)}
	shown := clientcmdapi.AuthInfo{
		TokenFile: w.TokenFile, ClientCertificate: w.ClientCertificateFile, ClientKey: w.ClientKeyFile,
	}
	both := clientcmdapi.Context{Cluster: w.Name, AuthInfo: replica.APIServer}
	data, err := yaml.Marshal(clientcmdapi.Config{
		APIVersion:     "v1",
		Kind:           "Config",
		Clusters:       []clientcmdapi.NamedCluster{{Name: w.Name, Cluster: server}},
		AuthInfos:      []clientcmdapi.NamedAuthInfo{{Name: replica.APIServer, AuthInfo: shown}},
		Contexts:       []clientcmdapi.NamedContext{{Name: w.Name, Context: both}},
		CurrentContext: w.Name,
	})
	if err != nil {
		return File{}, fmt.Errorf("encode the kubeconfig of the webhook %s: %w", w.Name, err)
	}
	return File{Path: filepath.Join(in.RunDir, "authorization-"+w.Name+".kubeconfig"), Data: data}, nil
}

// issuerFaults names the issuers that are the cluster's own: the apiserver would not know whose token one is.
func issuerFaults(c *replica.Cluster) replica.Faults {
	var faults replica.Faults
	own := serviceAccountIssuers(c)
	for i, j := range c.JWT {
		if slices.Contains(own, j.Issuer.URL) {
			faults = append(faults, replica.Fault{
				Field: fmt.Sprintf("jwt[%d].issuer.url", i), Found: fmt.Sprintf("%q", j.Issuer.URL),
				Allowed: "another issuer than that of the cluster's service accounts",
			})
		}
	}
	return faults
}

// serviceAccountIssuers are those whose tokens the apiserver takes for its own.
func serviceAccountIssuers(c *replica.Cluster) []string {
	if given := valuesOf(c.Components[replica.APIServer].ExtraArgs, "service-account-issuer"); len(given) > 0 {
		return given
	}
	return []string{serviceAccountIssuer(c)}
}
