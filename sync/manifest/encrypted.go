package manifest

// IsEncrypted reports whether a document was encrypted by SOPS, which adds a field of its own: its values
// are of no use as they are, and an API server would refuse the field.
func IsEncrypted(document map[string]any) bool {
	sops, ok := document["sops"].(map[string]any)
	if !ok {
		return false
	}
	_, sealed := sops["mac"]
	_, versioned := sops["version"]
	return sealed || versioned
}

// EncryptedMessage says what to do about such a document.
const EncryptedMessage = "it is encrypted with SOPS, and Waybill does not decrypt: create the object in the cluster by other means, " +
	"such as External Secrets or Sealed Secrets, and leave this file out"
