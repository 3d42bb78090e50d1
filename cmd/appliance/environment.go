package main

import (
	"errors"
	"io"
	"time"
)

// environment is what a verb knows of the process around it. main makes the only real one; a test makes its own.
type environment struct {
	program        string // how it was called, for what people are told to type
	stdin          io.Reader
	stdout, stderr io.Writer // data for programs, words for people
	getenv         func(name string) (value string, set bool)
	now            func() time.Time
	isTerminal     bool // whether stderr is one: only then progress is drawn
}

// The exit codes of every verb.
const (
	exitOK          = 0
	exitFailure     = 1 // the work was tried and failed, or a check found what it looks for
	exitRefused     = 2 // the input or the configuration is invalid, or changes are pending: nothing was done
	exitUnreachable = 3 // a service that is needed doesn't answer, or has no such database
)

// exitError is an error that says which code the process ends with. err may be nil where all has been said already: then
// nothing more is printed.
type exitError struct {
	code int
	err  error
}

// Error returns the text of what it wraps.
func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

// Unwrap returns what it wraps.
func (e *exitError) Unwrap() error { return e.err }

// refused marks err as the fault of what was given: exit code 2.
func refused(err error) error { return withCode(exitRefused, err) }

// unreachable marks err as the absence of a service: exit code 3.
func unreachable(err error) error { return withCode(exitUnreachable, err) }

func withCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code: code, err: err}
}

// exitCode returns what the process ends with: 0 without an error, and 1 where the error says nothing else.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return exitFailure
}
