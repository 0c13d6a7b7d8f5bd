package weather_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/action/weather"
)

func Example() {
	h, err := weather.New(weather.Config{Endpoint: "https://weather.example/now?q={location}&units={unit}"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	_, err = h.Execute(context.Background(), json.RawMessage(`{"location": "Paris", "unit": "kelvin"}`))
	fmt.Println(err)
	// Output:
	// location is a place, and unit celsius or fahrenheit
}
