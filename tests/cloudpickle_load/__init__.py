"""Loading what travels by value: payloads of cloudpickle, of each supported release and from other Python versions."""
