// Package weather is the action get-weather: the weather of a place, from a service that
// the operator names. It is also the sample of how an HTTP service becomes an action: a
// URL with places for the parameters, and pointers to what the answer has of the result.
package weather
