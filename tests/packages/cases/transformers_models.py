"""transformers: GPT-2, Llama, Mistral, T5, ViT and DistilBERT: loss, gradients, greedy generation."""

import torch
import transformers as T
from common import array, brief, fill, gradients, labels


def run():
    ids = labels(60, 2, 10)
    small = dict(
        vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48
    )
    out = {}

    def add(name, net, **inputs):
        net = fill(net).eval()
        result = net(**inputs)
        result.loss.backward()
        out[name] = [result.loss.item(), brief(result.logits), gradients(net)]
        return net

    gpt = add(
        "gpt2",
        T.GPT2LMHeadModel(T.GPT2Config(vocab_size=60, n_embd=32, n_layer=2, n_head=4, n_positions=32)),
        input_ids=ids,
        labels=ids,
    )
    add("llama", T.LlamaForCausalLM(T.LlamaConfig(**small, num_key_value_heads=2)), input_ids=ids, labels=ids)
    add(
        "mistral",
        T.MistralForCausalLM(T.MistralConfig(**small, num_key_value_heads=2, sliding_window=4)),
        input_ids=ids,
        labels=ids,
    )
    t5 = T.T5Config(
        vocab_size=60, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0
    )
    add("t5", T.T5ForConditionalGeneration(t5), input_ids=ids, labels=ids)
    vit = T.ViTConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        image_size=16,
        patch_size=4,
        num_labels=5,
    )
    add("vit", T.ViTForImageClassification(vit), pixel_values=array(2, 3, 16, 16), labels=labels(5, 2))
    add(
        "distilbert",
        T.DistilBertForMaskedLM(
            T.DistilBertConfig(vocab_size=60, dim=32, n_layers=2, n_heads=4, hidden_dim=48)
        ),
        input_ids=ids,
        labels=ids,
    )
    with torch.no_grad():
        out["generate"] = gpt.generate(ids[:, :4], max_new_tokens=6, do_sample=False, pad_token_id=0).tolist()
    return out
