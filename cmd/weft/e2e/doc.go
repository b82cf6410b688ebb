// Package e2e holds the tests that run the real binary, as a user does: its folder has no other code.
package e2e
