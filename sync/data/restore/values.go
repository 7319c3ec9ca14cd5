package restore

// annotations applies a rule to the annotations of an object, and of templates in it.
func (r *rule) annotations(value any) error {
	return each(value, func(object map[string]any) error {
		metadata, _ := object["metadata"].(map[string]any)
		values, _ := metadata["annotations"].(map[string]any)
		_, err := r.strings(values, func(string, string) error { return nil })
		return err
	})
}

// variables applies a rule to the environment of all containers, those of templates included: to
// values that are written there, not to those that come from elsewhere.
func (r *rule) variables(value any) error {
	return each(value, func(object map[string]any) error {
		for _, field := range []string{"containers", "initContainers", "ephemeralContainers"} {
			containers, _ := object[field].([]any)
			for _, container := range containers {
				container, _ := container.(map[string]any)
				if env, ok := container["env"].([]any); ok {
					kept, err := r.environment(env)
					if err != nil {
						return err
					}
					container["env"] = kept
				}
			}
		}
		return nil
	})
}

func (r *rule) environment(env []any) ([]any, error) {
	kept := make([]any, 0, len(env))
	for _, item := range env {
		variable, _ := item.(map[string]any)
		name, _ := variable["name"].(string)
		value, ok := variable["value"].(string)
		if !ok || !r.concerns(name) {
			kept = append(kept, item)
			continue
		}
		replaced, hit, err := r.replace(value)
		if err != nil {
			return nil, err
		}
		if hit && r.removes() {
			continue
		}
		variable["value"] = replaced
		kept = append(kept, item)
	}
	return kept, nil
}

// each calls visit for every map in a value, outer ones first, in the order of their fields. It leaves
// out metadata and what is in it.
func each(value any, visit func(object map[string]any) error) error {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			if err := each(item, visit); err != nil {
				return err
			}
		}
	case map[string]any:
		if err := visit(value); err != nil {
			return err
		}
		for _, field := range sorted(value) {
			if field == "metadata" {
				continue
			}
			if err := each(value[field], visit); err != nil {
				return err
			}
		}
	}
	return nil
}
