package main

// The facts that the records are made of.

var capitals = [][2]string{
	{"France", "Paris"}, {"Italy", "Rome"}, {"Spain", "Madrid"}, {"Portugal", "Lisbon"}, {"Germany", "Berlin"},
	{"Austria", "Vienna"}, {"Poland", "Warsaw"}, {"Greece", "Athens"}, {"Norway", "Oslo"}, {"Sweden", "Stockholm"},
	{"Finland", "Helsinki"}, {"Denmark", "Copenhagen"}, {"Ireland", "Dublin"}, {"Hungary", "Budapest"},
	{"Belgium", "Brussels"}, {"Croatia", "Zagreb"}, {"Egypt", "Cairo"}, {"Kenya", "Nairobi"}, {"Ghana", "Accra"},
	{"Morocco", "Rabat"}, {"Japan", "Tokyo"}, {"China", "Beijing"}, {"India", "New Delhi"}, {"Thailand", "Bangkok"},
	{"Vietnam", "Hanoi"}, {"Nepal", "Kathmandu"}, {"Canada", "Ottawa"}, {"Mexico", "Mexico City"}, {"Cuba", "Havana"},
	{"Peru", "Lima"}, {"Chile", "Santiago"}, {"Brazil", "Brasilia"}, {"Argentina", "Buenos Aires"},
	{"Australia", "Canberra"}, {"New Zealand", "Wellington"},
}

var opposites = [][2]string{
	{"hot", "cold"}, {"big", "small"}, {"tall", "short"}, {"fast", "slow"}, {"early", "late"}, {"happy", "sad"},
	{"open", "closed"}, {"full", "empty"}, {"old", "new"}, {"light", "heavy"}, {"wet", "dry"}, {"hard", "soft"},
	{"loud", "quiet"}, {"rich", "poor"}, {"strong", "weak"}, {"clean", "dirty"}, {"deep", "shallow"},
	{"bright", "dark"}, {"near", "far"}, {"high", "low"}, {"wide", "narrow"}, {"first", "last"}, {"thick", "thin"},
	{"young", "old"}, {"easy", "difficult"}, {"brave", "afraid"}, {"sweet", "bitter"}, {"smooth", "rough"},
}

var plurals = [][2]string{
	{"child", "children"}, {"mouse", "mice"}, {"foot", "feet"}, {"tooth", "teeth"}, {"goose", "geese"},
	{"man", "men"}, {"woman", "women"}, {"leaf", "leaves"}, {"knife", "knives"}, {"wolf", "wolves"}, {"city", "cities"},
	{"baby", "babies"}, {"box", "boxes"}, {"bus", "buses"}, {"glass", "glasses"}, {"potato", "potatoes"},
	{"sheep", "sheep"}, {"story", "stories"}, {"watch", "watches"}, {"half", "halves"},
}

var pasts = [][2]string{
	{"go", "went"}, {"see", "saw"}, {"eat", "ate"}, {"run", "ran"}, {"write", "wrote"}, {"sing", "sang"},
	{"swim", "swam"}, {"take", "took"}, {"give", "gave"}, {"find", "found"}, {"buy", "bought"}, {"teach", "taught"},
	{"think", "thought"}, {"speak", "spoke"}, {"drive", "drove"}, {"fly", "flew"}, {"know", "knew"}, {"sleep", "slept"},
	{"build", "built"}, {"walk", "walked"}, {"play", "played"}, {"carry", "carried"},
}

// Each animal with its kind, the place where it lives and the name of its young.
var animals = [][4]string{
	{"dog", "mammal", "with people", "puppy"}, {"cat", "mammal", "with people", "kitten"},
	{"cow", "mammal", "on a farm", "calf"}, {"horse", "mammal", "on a farm", "foal"},
	{"sheep", "mammal", "on a farm", "lamb"}, {"goat", "mammal", "on a farm", "kid"},
	{"duck", "bird", "on a pond", "duckling"}, {"goose", "bird", "on a lake", "gosling"},
	{"hen", "bird", "on a farm", "chick"}, {"swan", "bird", "on a lake", "cygnet"},
	{"eagle", "bird", "in the mountains", "eaglet"}, {"owl", "bird", "in the forest", "owlet"},
	{"bear", "mammal", "in the forest", "cub"}, {"deer", "mammal", "in the forest", "fawn"},
	{"lion", "mammal", "on the savanna", "cub"}, {"kangaroo", "mammal", "in Australia", "joey"},
	{"whale", "mammal", "in the sea", "calf"}, {"seal", "mammal", "by the sea", "pup"},
	{"frog", "amphibian", "by a pond", "tadpole"}, {"eel", "fish", "in rivers and the sea", "elver"},
}

var months = []string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
	"November", "December"}

var days = []string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}

// Each larger unit with how many of the smaller one it has.
var units = []struct {
	large, larges, smalls string
	times                 int
}{
	{"minute", "minutes", "seconds", 60}, {"hour", "hours", "minutes", 60}, {"day", "days", "hours", 24},
	{"week", "weeks", "days", 7}, {"year", "years", "months", 12}, {"meter", "meters", "centimeters", 100},
	{"kilometer", "kilometers", "meters", 1000}, {"kilogram", "kilograms", "grams", 1000},
}

var colors = [][2]string{
	{"the sky on a clear day", "blue"}, {"fresh grass", "green"}, {"snow", "white"}, {"a ripe banana", "yellow"},
	{"a ripe tomato", "red"}, {"coal", "black"}, {"a carrot", "orange"}, {"a ripe lemon", "yellow"},
	{"milk", "white"}, {"a leaf in summer", "green"}, {"chocolate", "brown"}, {"a flamingo", "pink"},
}

var lists = []struct {
	what  string
	items []string
}{
	{"fruits", []string{"apples", "pears", "grapes", "plums", "cherries", "oranges"}},
	{"vegetables", []string{"carrots", "peas", "onions", "beans", "spinach", "potatoes"}},
	{"colors", []string{"red", "green", "blue", "yellow", "purple", "orange"}},
	{"farm animals", []string{"cows", "sheep", "hens", "goats", "pigs", "horses"}},
	{"tools", []string{"a hammer", "a saw", "a drill", "a wrench", "a file", "a chisel"}},
	{"sports", []string{"tennis", "football", "rowing", "cycling", "hockey", "swimming"}},
	{"musical instruments", []string{"the piano", "the violin", "the flute", "the drum", "the cello", "the trumpet"}},
	{"things in a kitchen", []string{"a stove", "a kettle", "a pan", "a spoon", "a bowl", "a knife"}},
}

var planets = []string{"Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune"}

var ordinals = []string{"first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"}

// Each story has questions with answers.
var stories = []struct {
	text string
	asks [][2]string
}{
	{"Maya has a red bicycle. She rides it to school every Monday and Friday.", [][2]string{
		{"What color is Maya's bicycle?", "Maya's bicycle is red."},
		{"When does Maya ride to school?", "Maya rides to school every Monday and Friday."}}},
	{"Tom baked a cake with six eggs. He gave half of it to his sister Anna.", [][2]string{
		{"How many eggs did Tom use?", "Tom used six eggs."},
		{"Who got half of the cake?", "His sister Anna got half of the cake."}}},
	{"The library opens at nine in the morning and closes at six in the evening. It is closed on Sunday.", [][2]string{
		{"When does the library open?", "The library opens at nine in the morning."},
		{"On which day is the library closed?", "The library is closed on Sunday."}}},
	{"Omar planted ten apple trees behind his house. Three years later he picked his first apples.", [][2]string{
		{"What did Omar plant?", "Omar planted ten apple trees."},
		{"When did Omar pick his first apples?", "Omar picked his first apples three years later."}}},
	{"The train to the coast leaves from platform four. The trip takes two hours.", [][2]string{
		{"From which platform does the train leave?", "The train leaves from platform four."},
		{"How long does the trip take?", "The trip takes two hours."}}},
	{"Lena plays the violin in a small orchestra. They practice in the town hall on Thursday.", [][2]string{
		{"What does Lena play?", "Lena plays the violin."},
		{"Where does the orchestra practice?", "The orchestra practices in the town hall."}}},
	{"A storm broke the old bridge in March. The new bridge is made of steel.", [][2]string{
		{"What broke the old bridge?", "A storm broke the old bridge."},
		{"What is the new bridge made of?", "The new bridge is made of steel."}}},
	{"Grandfather keeps bees in the garden. In August he fills twenty jars with honey.", [][2]string{
		{"What does Grandfather keep in the garden?", "Grandfather keeps bees in the garden."},
		{"How many jars does he fill?", "He fills twenty jars with honey."}}},
	{"The school has two gardens. The children grow beans in one and flowers in the other.", [][2]string{
		{"How many gardens does the school have?", "The school has two gardens."},
		{"What do the children grow?", "The children grow beans and flowers."}}},
	{"Nina works as a nurse at night. She sleeps until noon and then walks her dog.", [][2]string{
		{"What is Nina's work?", "Nina works as a nurse."},
		{"What does Nina do after she sleeps?", "Nina walks her dog."}}},
	{"The lake is deep and cold. In winter it freezes, and people skate on the ice.", [][2]string{
		{"What happens to the lake in winter?", "In winter the lake freezes."},
		{"What do people do on the ice?", "People skate on the ice."}}},
	{"Paul lost his keys on the bus. The driver found them under a seat.", [][2]string{
		{"Where did Paul lose his keys?", "Paul lost his keys on the bus."},
		{"Who found the keys?", "The driver found the keys under a seat."}}},
}

// Questions with longer answers.
var explanations = [][2]string{
	{"How do I make a cup of tea?", "Boil fresh water. Put a tea bag in a cup and pour the water over it. Wait four minutes, take the bag out, and add milk if you like."},
	{"How do I boil an egg?", "Put the egg in boiling water and wait eight minutes. Then cool it in cold water and take off the shell."},
	{"How do I plant a seed?", "Fill a pot with soil. Put the seed one finger deep, cover it, and give it a little water every day."},
	{"How do I wash my hands well?", "Wet your hands, rub them with soap for twenty seconds, wash the soap off, and dry them with a clean towel."},
	{"How do I cross a street safely?", "Stop at the edge, look left, look right, and look left again. Cross when no car is near."},
	{"How do I fix a flat bicycle tire?", "Take the tire off, find the hole, clean the place, glue a patch on it, and put air in the tire."},
	{"How do I make a paper boat?", "Fold the paper in half, fold the corners to the middle, turn up the edges, and pull the sides apart."},
	{"How do I clean a window?", "Wash the glass with warm water and soap. Then dry it from top to bottom with a soft cloth."},
	{"Why does ice float on water?", "Ice floats because it is lighter than the same amount of water. Water grows larger when it freezes."},
	{"Why do we see lightning before we hear thunder?", "Light is much faster than sound, so the light of a storm gets to us first."},
	{"Why do leaves look green?", "Leaves hold a green matter called chlorophyll, which takes in red and blue light and sends green light back."},
	{"Why is the sea salty?", "Rivers carry a little salt from rocks into the sea. The water goes up into the air, but the salt stays."},
	{"Why do people sleep?", "Sleep lets the body rest and grow. It also helps the brain to keep what it learned in the day."},
	{"Why does the moon shine?", "The moon has no light of its own. It shines because it sends back the light of the sun."},
	{"What is a volcano?", "A volcano is a mountain with an opening through which hot melted rock comes up from deep in the earth."},
	{"What is a desert?", "A desert is a land with very little rain. Few plants and animals can live there."},
	{"What is a dictionary?", "A dictionary is a book that lists words in order and says what they mean."},
	{"What is a rainbow?", "A rainbow is an arc of colors in the sky. It is made when the sun shines through drops of rain."},
	{"What does a baker do?", "A baker makes bread and cakes. Most bakers start to work very early in the morning."},
	{"What does a teacher do?", "A teacher helps people learn. Most teachers work in a school with a class of children."},
	{"What does a farmer do?", "A farmer grows plants and keeps animals, so that people have food to eat."},
	{"What does a doctor do?", "A doctor finds out why people are ill and helps them to get well."},
	{"What does a pilot do?", "A pilot flies an airplane and brings the people in it safely to another place."},
	{"What does a carpenter do?", "A carpenter makes things of wood, such as tables, doors and roofs."},
}

// Each word with a sentence that uses it.
var sentences = [][2]string{
	{"garden", "We grow roses and beans in the garden behind our house."},
	{"window", "She opened the window to let the fresh air in."},
	{"river", "The river runs slowly through the old town."},
	{"letter", "He wrote a long letter to his friend in Norway."},
	{"market", "On Saturday we buy fish and bread at the market."},
	{"winter", "In winter the days are short and the nights are cold."},
	{"music", "The music was so loud that nobody could sleep."},
	{"bridge", "A stone bridge joins the two sides of the valley."},
	{"breakfast", "For breakfast they eat warm bread with butter and honey."},
	{"journey", "The journey to the island took three days by ship."},
	{"neighbor", "Our neighbor waters the plants when we are away."},
	{"village", "The village has one school, one shop and a small church."},
	{"candle", "A single candle lit the dark room."},
	{"forest", "Tall trees keep the forest cool in summer."},
	{"clock", "The clock in the kitchen is ten minutes fast."},
	{"umbrella", "Take an umbrella, because it looks like rain."},
	{"mountain", "From the top of the mountain you can see the sea."},
	{"hospital", "The hospital is next to the railway station."},
	{"question", "The teacher answered every question with a smile."},
	{"blanket", "The child slept under a soft green blanket."},
	{"harbor", "Fishing boats come back to the harbor before dark."},
	{"ticket", "Keep your ticket until the end of the trip."},
	{"painting", "The painting shows a boat on a quiet lake."},
	{"bakery", "The smell of fresh bread comes from the bakery."},
	{"weather", "The weather was fine, so we walked home along the beach."},
}
