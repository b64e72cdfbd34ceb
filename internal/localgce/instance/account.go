package instance

import "encoding/json"

// CloudScope leaves it to IAM what a service account may do. Narrower access scopes cap it.
const CloudScope = "https://www.googleapis.com/auth/cloud-platform"

// Account is a service account of a VM, with the access scopes of the tokens that the VM has for it.
type Account struct {
	Email  string   `json:"email"`
	Scopes []string `json:"scopes"`
}

// ServiceAccounts are those of the VM: one at most.
func (i VM) ServiceAccounts() []Account {
	for _, shown := range []map[string]any{i.Shown, i.Made.Shown} {
		list, given := shown["serviceAccounts"]
		if !given {
			continue
		}
		var accounts []Account
		text, _ := json.Marshal(list) // what a test or the Compute API has put there: plain values
		_ = json.Unmarshal(text, &accounts)
		return accounts
	}
	return []Account{{Email: MastersAccount(), Scopes: []string{CloudScope}}}
}

// Accounts are the emails of the VM's service accounts.
func (i VM) Accounts() (emails []string) {
	for _, a := range i.ServiceAccounts() {
		emails = append(emails, a.Email)
	}
	return emails
}
