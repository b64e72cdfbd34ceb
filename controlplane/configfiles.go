package controlplane

import (
	_ "embed" // the two documents
	"path/filepath"
)

// File is a configuration file that a process reads. It may hold keys: write it for its owner alone.
type File struct {
	Path string
	Data []byte
	// Public: others than the apiserver read it, and it holds no secret. Nobody but the agent may write it.
	Public bool
}

//go:embed files/authentication.yaml
var authentication []byte

//go:embed files/audit-policy.yaml
var auditPolicy []byte

// authenticationFile is where the AuthenticationConfiguration lies.
func (in Input) authenticationFile() string {
	return filepath.Join(in.RunDir, "authentication.yaml")
}

// encryptionFile is where the EncryptionConfiguration lies: on a tmpfs, apart from those keys that are on the disk, so
// that an apiserver that crashed starts again with what it was started with, whatever was written to the disk
// meanwhile.
func (in Input) encryptionFile() string {
	return filepath.Join(in.RunDir, "encryption-config.yaml")
}

// authorizationFile is where the AuthorizationConfiguration lies.
func (in Input) authorizationFile() string {
	return filepath.Join(in.RunDir, "authorization.yaml")
}

// configFiles are the files that the apiserver reads, and the path of the audit policy: the configuration's own if it
// names one.
func (in Input) configFiles() (files []File, policy string, err error) {
	files, err = in.accessFiles()
	if err != nil {
		return nil, "", err
	}
	files = append(files, File{Path: in.encryptionFile(), Data: in.Encryption})
	if in.Cluster.AuditPolicy != "" {
		return files, in.Cluster.AuditPolicy, nil
	}
	policy = filepath.Join(in.RunDir, "audit-policy.yaml")
	return append(files, File{Path: policy, Data: auditPolicy}), policy, nil
}
