// Package validator stands in for gopkg.in/validator.v2, so that no module has to be fetched. The generated client checks
// with it which of several types an answer may have; here what can be read as one is one.
package validator

// Validate finds nothing wrong.
func Validate(interface{}) error {
	return nil
}
