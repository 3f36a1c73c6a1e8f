// Package arch holds the tests that keep the module's shape: which package may
// import which, where each third-party library lives, and what node code must
// not contain. The tests parse the sources themselves, because a test that asks
// another program is cached by go test and stays green after a bad change.
package arch
